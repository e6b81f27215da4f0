import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ToolMessageState as Status } from "#gen/toolbus/space/v1/space_pb.ts";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { shrinkStore } from "#runtime/bus/testing/shrink-store.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { createResultRemoval } from "#runtime/results/store/removal.ts";
import { createResultStore } from "#runtime/results/store/store.ts";
import { until } from "#runtime/time/until.ts";
import { asPrincipal } from "../../../../test/harness/callers.ts";
import { ended } from "../fakes/fake-provider.ts";
import { openReader, type Reader, readFile } from "../peers/reader.ts";

const as = (principal: string) => asPrincipal(principal, { isOperator: principal === "olga" });
const sessionId = "alices";

describe("results over the limit", () => {
  let suite: Reader;
  beforeAll(async () => {
    suite = await openReader({ TOOLBUS_MAX_RESULT_BYTES: "2048" });
    await suite.clients.sessions.createSession({ agent: "reader", sessionId }, as("alice"));
    suite.spaces.activeSpaces.set(sessionId, "room");
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  type Asked = Parameters<Reader["clients"]["calls"]["readResult"]>[0];
  async function read(asked: Asked, principal = "alice") {
    const parts = await Array.fromAsync(suite.clients.calls.readResult(asked, as(principal)));
    const [first, ...rest] = parts.map(({ part }) => part);
    const chunks = rest.flatMap((part) => (part.case === "chunk" ? [part.value] : []));
    return {
      result: first?.case === "result" ? first.value : undefined,
      text: Buffer.concat(chunks.map(({ data }) => data)).toString(),
      offsets: chunks.map(({ offset }) => Number(offset)),
    };
  }
  const refusalOf = (reading: Promise<unknown>) => reading.then(() => undefined, failureFromConnectError);
  const args = { text: "é".repeat(200_000), end: "here" };
  const whole = JSON.stringify({ success: true, args });
  const echo = async (callId: string) => {
    const { output } = await suite.clients.call({
      sessionId,
      name: "echo",
      callId,
      argumentsJson: JSON.stringify(args),
    });
    return output as { storedReference: string; beginning: string; rest: string; bytes: number };
  };

  test("LOOP-8 are read whole by their owner and by operators, from any byte on and to any length, with size and digest", async () => {
    const shown = await echo("large");
    const value = shown.storedReference;
    expect(shown.rest).toContain(`"offset":${Buffer.byteLength(shown.beginning)}`);
    const bytes = Buffer.from(whole);
    const asked = { result: { case: "storedReference" as const, value } };
    for (const principal of ["alice", "olga"]) {
      const { result, text, offsets } = await read(asked, principal);
      expect(text).toBe(whole);
      expect(result).toMatchObject({ storedReference: value, size: BigInt(bytes.length) });
      expect(Buffer.from(result?.sha256 ?? [])).toEqual(createHash("sha256").update(bytes).digest());
      expect(offsets[0]).toBe(0);
    }
    const part = await read({ ...asked, offset: 300_000n, limit: 100_000n });
    expect(part.text).toBe(bytes.subarray(300_000, 400_000).toString());
    expect([part.offsets[0], part.result?.size]).toEqual([300_000, BigInt(bytes.length)]);
    expect(await read({ ...asked, offset: BigInt(bytes.length) })).toMatchObject({ text: "", offsets: [] });
    expect(await refusalOf(read({ ...asked, offset: BigInt(bytes.length + 1) }))).toMatchObject({
      code: "invalid_argument",
    });
  });

  test("LOOP-8 are nobody else's to read, whose session is not told apart from one that never was", async () => {
    const { storedReference } = await echo("foreign");
    const readAs = (value: string) => read({ result: { case: "storedReference", value } }, "mallory");
    const other = storedReference.replace(sessionId, "nobodys");
    for (const value of [storedReference, other, "nonsense"])
      expect(await refusalOf(readAs(value))).toMatchObject({ code: "not_found", reason: "RESULT_NOT_FOUND" });
  });

  test("LOOP-8 are read by the call's id where it is recorded, short ones too; one without a result says so", async () => {
    const answers = { short: '"yes"', long: JSON.stringify("x".repeat(300_000)) };
    for (const [callId, value] of Object.entries(answers)) {
      const calling = suite.clients.call({ sessionId, name: "ask", callId });
      await until(() => suite.spaces.statusesOf(callId).includes(Status.REQUIRES_ACTION));
      const asked = { result: { case: "callId" as const, value: callId } };
      expect(await refusalOf(read(asked))).toMatchObject({ code: "failed_precondition", reason: "CALL_IN_PROGRESS" });
      await suite.clients.calls.submitToolResult({ callId, outcome: { case: "resultJson", value } }, as("alice"));
      await calling;
      expect((await read(asked)).text).toBe(value);
      expect(await refusalOf(read(asked, "mallory"))).toMatchObject({ code: "permission_denied" });
      expect((await read({ ...asked, offset: 2n, limit: 2n })).text).toBe(value.slice(2, 4));
    }
    const unknown = read({ result: { case: "callId", value: "nothing" } });
    expect(await refusalOf(unknown)).toMatchObject({ code: "not_found" });
  });

  test("LOOP-8 that are no longer kept are told as such", async () => {
    const { storedReference: value } = await echo("gone");
    const stored = await createResultStore(suite.bus).find(value);
    await createResultRemoval(suite.bus).remove(stored!);
    expect(await refusalOf(read({ result: { case: "storedReference", value } }))).toMatchObject({
      code: "not_found",
      reason: "RESULT_NOT_FOUND",
      message: expect.stringContaining("no longer kept"),
    });
  });
});

type Content = { blockJson: string; data: Uint8Array }[];
const shortened = { truncated: true, rest: expect.stringMatching(/is not kept: the store is full/) };

describe("LOOP-14 a call that has happened is told with its result", () => {
  let suite: Reader;
  let sessionId = "";
  beforeAll(async () => {
    suite = await openReader({ TOOLBUS_MAX_RESULT_BYTES: String(512 * 1_024) });
    const tool = { ...readFile.tool, visible: true };
    suite.mcp.offer([{ source: "files", tool }], [{ source: "files", available: true }]);
    sessionId = await suite.openSession();
    suite.spaces.activeSpaces.set(sessionId, "room");
    const scope = { case: "session" as const, value: { sessionId } };
    await until(async () => (await suite.clients.router.listTools({ scope })).tools.some(({ tool }) => tool?.visible));
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
    await until(() => suite.spaces.statusesOf("full").includes(Status.COMPLETE), { what: "its message to end" });
  });

  test.each([
    ["and its record holds it, for all its escapes", JSON.stringify('"'.repeat(250_000)), '"'.repeat(250_000)],
    ["and a message cannot hold it", JSON.stringify("x".repeat(600_000)), shortened],
  ])("where the store of results is full by then, %s", async (what, outputJson, output) => {
    const callId = what.replaceAll(/\W+/g, "-");
    const { told, again } = await callWhileFull("OBJ_toolbus_results", callId, outputJson);
    expect(told).toMatchObject({ isError: false, output });
    expect(again).toMatchObject({ isError: false, output });
  });

  test("TOOL-7 a result from outside is refused while the store of results is full, and is taken whole afterwards", async () => {
    const calling = suite.clients.call({ sessionId, name: "ask", callId: "asked" });
    await until(() => suite.spaces.statusesOf("asked").includes(Status.REQUIRES_ACTION));
    const value = JSON.stringify('"'.repeat(300_000));
    const submit = () =>
      suite.clients.calls.submitToolResult({ callId: "asked", outcome: { case: "resultJson", value } });
    const { config } = await suite.bus.manager.streams.info("OBJ_toolbus_results");
    await shrinkStore(suite.bus, "OBJ_toolbus_results", 256);
    const refused = await submit().then(() => "taken", failureFromConnectError);
    await shrinkStore(suite.bus, "OBJ_toolbus_results", config.max_bytes);
    expect(refused).toMatchObject({ code: "resource_exhausted" });
    await submit();
    expect((await calling).output).not.toMatchObject(shortened);
    const asked = { result: { case: "callId" as const, value: "asked" } };
    const parts = await Array.fromAsync(suite.clients.calls.readResult(asked));
    expect(parts[0]?.part).toMatchObject({ case: "result", value: { size: BigInt(value.length) } });
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
