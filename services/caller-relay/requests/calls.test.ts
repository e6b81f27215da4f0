import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createCalls } from "./calls.ts";

const result = create(ToolResultSchema, { outputJson: "1" });
const tell = () => undefined;
const waiting = () => ({ signal: new AbortController().signal, tell });

test("CTR-7 a call that nobody waits for any more is not joined: it is begun again once it has ended", async () => {
  const calls = createCalls();
  const ending = Promise.withResolvers<ToolResult>();
  const leaving = new AbortController();
  const first = calls.run("k", () => ending.promise, { signal: leaving.signal, tell });
  leaving.abort(new Error("canceled"));
  await expect(first).rejects.toThrow("canceled");
  expect(calls.has("k")).toBe(false);
  let isBegun = false;
  const begin = async () => {
    isBegun = true;
    return result;
  };
  const second = calls.run("k", begin, waiting());
  await new Promise(setImmediate);
  expect(isBegun).toBe(false);
  ending.reject(new Error("its end"));
  expect(await second).toBe(result);
});

test("CTR-7 whoever waits for a call is told whether somebody else does, too", async () => {
  const calls = createCalls();
  const ending = Promise.withResolvers<ToolResult>();
  const told: string[] = [];
  const named = (name: string) => ({ ...waiting(), onOthers: (are: boolean) => void told.push(`${name} ${are}`) });
  const leaving = new AbortController();
  const first = calls.run("k", () => ending.promise, named("first"));
  const second = calls.run("k", () => ending.promise, { ...named("second"), signal: leaving.signal });
  expect(told.toSorted()).toEqual(["first true", "second true"]);
  leaving.abort(new Error("canceled"));
  await expect(second).rejects.toThrow("canceled");
  expect(told.at(-1)).toBe("first false");
  ending.resolve(result);
  await first;
});
