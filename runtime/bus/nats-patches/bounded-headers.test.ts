import { headers, type MsgHdrsImpl } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import "./bounded-headers.ts";

const read = (lines: readonly string[]) =>
  (headers().constructor as typeof MsgHdrsImpl).decode(Buffer.from(["NATS/1.0", ...lines, "", ""].join("\r\n")));

test("headers are found by their name as it is written, and all of one name are there", () => {
  const block = read(["Rpc-More: 1", "x-a: 1", "x-a: 2", "X-A: 3"]);
  expect([block.get("Rpc-More"), block.has("rpc-more"), block.values("x-a"), block.get("toString")]).toEqual([
    ...["1", false, ["1", "2"], ""],
  ]);
  expect([...block].map(([key]) => key)).toEqual(["Rpc-More", "x-a", "X-A"]);
});

test("SEC-5 as many headers as a client of the gateway may send are read in a moment, and no others", () => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `x${n}: 1`);
  expect(read(lines.slice(0, 2_000)).size()).toBe(2_000);
  expect(() => read(lines)).toThrow("more than 4096 headers");
});
