// Large JSON, which is read on a thread of its own: its messages and its faults are those of small JSON.

import { create, fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CreateRunRequestSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { openServer } from "../testing/echo-server.ts";
import { LARGE_JSON_BYTES, messageFromLargeJson } from "./transcoder.ts";

const options = { ignoreUnknownFields: false };
const read = (json: string) =>
  messageFromLargeJson(CreateRunRequestSchema, Buffer.from(json), { options, taker: { sender: "ada" } });

test("SEC-5 what is in a message comes out of it", async () => {
  const text = `${"x".repeat(100_000)} ü 😀 \u0000`;
  const request = create(CreateRunRequestSchema, {
    sessionId: "s",
    input: [{ item: { case: "message", value: { role: 1, content: [{ part: { case: "text", value: text } }] } } }],
    options: { limits: { maxTurns: 3, timeout: { seconds: 1n, nanos: 5 } }, metadata: { a: "", b: "ü" }, mode: 1 },
  });
  expect(await read(toJsonString(CreateRunRequestSchema, request))).toEqual(request);
});

test.each([
  ["no JSON", '{"input":'],
  ["an unknown field", '{"inputs":[]}'],
  ["the same member twice", '{"agent":"a","agent":"b"}'],
  ["another type", '{"agent":1}'],
  ["two kinds at once", '{"input":[{"message":{},"call":{}}]}'],
])("SEC-5 %s is refused with the words that small JSON gets", async (_, json) => {
  let fault: unknown;
  try {
    fromJsonString(CreateRunRequestSchema, json, options);
  } catch (error) {
    fault = error;
  }
  await expect(read(json)).rejects.toThrow(`[invalid_argument] ${(fault as Error).message}`);
  await expect(read(json)).rejects.toBeInstanceOf(ConnectError);
});

test("SEC-5 integers that would lose digits are looked for on the thread", async () => {
  await expect(read('{"agent":9007199254740993}')).rejects.toThrow(
    "[invalid_argument] the JSON has the number 9007199254740993",
  );
});

test("SEC-5 who has left is not read on for, and is told why, whether his message waits or is read", async () => {
  const leaving = new AbortController();
  const json = Buffer.from(`{"agent":"${"x".repeat(8 * LARGE_JSON_BYTES)}"}`);
  const taker = { sender: "ada", signal: leaving.signal };
  const both = [1, 2].map(() => messageFromLargeJson(CreateRunRequestSchema, json, { options, taker }));
  await new Promise((resolve) => setImmediate(resolve));
  const late = new ConnectError("its time is over", Code.DeadlineExceeded);
  leaving.abort(late);
  const ends = await Promise.allSettled(both);
  expect(ends.map((end) => end.status === "rejected" && end.reason)).toEqual([late, late]);
  expect((await read('{"agent":"next"}')).agent).toBe("next");
});

test("SEC-5 a request of large JSON is answered as one of small JSON, and keeps no other one waiting", async () => {
  const { url } = await openServer();
  const post = async (body: string) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/toolbus.echo.v1.EchoService/Unary`, { method: "POST", headers, body });
    return [answer.status, await answer.text()] as const;
  };
  const large = JSON.stringify("A".repeat(4 * LARGE_JSON_BYTES));
  expect(await post(large)).toEqual([200, large]);
  const [small, broken] = [await post("[1"), await post(`[1${" ".repeat(LARGE_JSON_BYTES)}`)];
  expect(broken[0]).toBe(small[0]);
  const said = ([, text]: readonly [number, string]) => JSON.parse(text) as { code: string; message: string };
  expect(said(broken).code).toBe(said(small).code);
  expect(said(broken).message).toContain("from JSON");
});

test("SEC-5 large JSON where Connect's own handlers would read it is refused", async () => {
  const { url } = await openServer();
  const body = Buffer.from(`${" ".repeat(9 * 2 ** 20)}"AA=="`);
  const envelope = Buffer.concat([Buffer.alloc(5), body]);
  envelope.writeUInt32BE(body.length, 1);
  const headers = { "content-type": "application/connect+json" };
  const path = `${url}/toolbus.echo.v1.EchoService/ClientStream`;
  const answer = await fetch(path, { method: "POST", headers, body: envelope });
  expect(await answer.text()).toContain("JSON of more than 8388608 bytes is taken without compression");
});
