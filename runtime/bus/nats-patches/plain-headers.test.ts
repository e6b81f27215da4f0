import { headers, type MsgHdrsImpl } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import { PlainHeaders } from "./plain-headers.ts";

test("plain headers are written as the client's own, and are as long as they say", () => {
  const own = headers();
  own.set("Toolbus-Append-Id", "a1");
  own.set("Nats-Msg-Id", "ünïque");
  const plain = new PlainHeaders().add("Toolbus-Append-Id", "a1");
  plain.set("Nats-Msg-Id", "ünïque");
  expect(plain.encode()).toEqual(Buffer.from((own as MsgHdrsImpl).encode()));
  expect(Buffer.byteLength(plain.toString())).toBe(plain.encode().length);
});

test("a value with a line break, which would be another header, is refused", () => {
  expect(() => new PlainHeaders().set("Nats-Msg-Id", "a\r\nb: c")).toThrow("line break");
});

const read = (lines: readonly string[]) =>
  (headers().constructor as typeof MsgHdrsImpl).decode(Buffer.from(["NATS/1.0", ...lines, "", ""].join("\r\n")));

test("headers are found by their name as it is written, and all of one name are there", () => {
  const block = read(["Rpc-More: 1", "x-a: 1", "x-a: 2", "X-A: 3"]);
  expect([block.get("Rpc-More"), block.has("rpc-more"), block.values("x-a")]).toEqual(["1", false, ["1", "2"]]);
  expect([...block].map(([key]) => key)).toEqual(["Rpc-More", "x-a", "X-A"]);
});

test("SEC-5 as many headers as a client of the gateway may send are read in a moment, and no others", () => {
  const lines = Array.from({ length: 20_000 }, (_, n) => `x${n}: 1`);
  expect(read(lines.slice(0, 2_000)).size()).toBe(2_000);
  expect(() => read(lines)).toThrow("more than 4096 headers");
});
