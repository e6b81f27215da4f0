import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { shrinkStore } from "#runtime/bus/testing/shrink-store.ts";
import { until } from "#runtime/time/until.ts";
import { ended } from "../fakes/fake-provider.ts";
import { openReader, type Reader, readFile } from "../peers/reader.ts";

type Content = { blockJson: string; data: Uint8Array }[];
const shortened = { truncated: true, rest: expect.stringMatching(/is not kept: the store is full/) };

describe("LOOP-14 a call that has happened is told with its result", () => {
  let suite: Reader;
  let sessionId = "";
  beforeAll(async () => {
    suite = await openReader({ TOOLBUS_MAX_RESULT_BYTES: String(512 * 1_024) });
    sessionId = await suite.openSession();
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  /** A call whose store is full by the time that its provider answers. */
  async function callWhileFull(stream: string, callId: string, outputJson: string, content: Content = []) {
    const { config } = await suite.bus.manager.streams.info(stream);
    suite.mcp.answer = async function* () {
      const { state } = await suite.bus.manager.streams.info(stream);
      await shrinkStore(suite.bus, stream, state.bytes + 256);
      yield { event: { case: "result", value: { outputJson, content } } };
    };
    const request = { sessionId, name: "read", argumentsJson: '{"path":"a"}', callId };
    try {
      const told = await suite.clients.call(request);
      return { told, again: await suite.clients.call({ ...request, recovering: true }) };
    } finally {
      await shrinkStore(suite.bus, stream, config.max_bytes);
    }
  }

  test("where the store of calls is full by then; asked again it has an unknown outcome", async () => {
    const { told, again } = await callWhileFull("KV_toolbus_calls", "full", JSON.stringify("x".repeat(50_000)));
    expect(told).toMatchObject({ isError: false, output: "x".repeat(50_000) });
    expect(again.output).toEqual({ error: expect.stringMatching(/^outcome_unknown: /) });
  });

  test.each([
    ["and its record cannot hold it", JSON.stringify('"'.repeat(250_000)), '"'.repeat(250_000)],
    ["and a message cannot hold it", JSON.stringify("x".repeat(600_000)), shortened],
  ])("where the store of results is full by then, %s", async (callId, outputJson, output) => {
    const { told, again } = await callWhileFull("OBJ_toolbus_results", callId.replaceAll(" ", "-"), outputJson);
    expect(told).toMatchObject({ isError: false, output });
    expect(again.output).toMatchObject(shortened);
  });

  test("where the store of results is full by then, and a picture comes with it", async () => {
    const picture = { blockJson: '{"type":"image","mimeType":"image/png"}', data: new Uint8Array(200_000) };
    const { told } = await callWhileFull("OBJ_toolbus_results", "pictured", "1", [picture]);
    expect(told).toMatchObject({ isError: false, output: 1 });
    expect(told.events.at(-1)?.value).toMatchObject({
      content: [{ blockJson: expect.stringContaining("the store is full"), storedReference: "" }],
    });
  });
});

test("LOOP-15 a call that is not recorded is canceled although the store of calls is full", async () => {
  await using suite = await openReader();
  const tool = { ...readFile.tool, effect: Effect.PURE };
  suite.mcp.offer([{ source: "files", tool }], [{ source: "files", available: true }]);
  suite.mcp.answer = async function* (_, signal) {
    yield { event: { case: "progress", value: { progress: 1 } } };
    await ended(signal);
  };
  const sessionId = await suite.openSession();
  const calling = suite.clients.call({ sessionId, name: "read", argumentsJson: '{"path":"a"}', callId: "pure" });
  await until(() => suite.mcp.calls.some(({ callId }) => callId === "pure"));
  await shrinkStore(suite.bus, "KV_toolbus_calls", 64);
  expect((await suite.clients.calls.cancelToolCall({ callId: "pure" })).started).toBe(true);
  expect((await calling).output).toEqual({ error: "the call was canceled" });
  await expect(suite.clients.calls.cancelToolCall({ callId: "never" })).rejects.toThrow(/the store is full/);
});
