// The tools of a session's caller on a unix socket: for anybody who speaks JSON-RPC, and as an MCP server for an agent.

import { once } from "node:events";
import { lstat, mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { readLines } from "#runtime/lifecycle/child-process/lines.ts";
import { commandsAt, until } from "../../harness/commands/commands-at.ts";
import { programOf } from "../../harness/programs.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let directory: string;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ services: ["gateway", "tool-router", "caller-relay", "spaces"] }));
  directory = await mkdtemp(join(tmpdir(), "caller-socket-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  await until(() => applyAgent().catch(() => undefined), { what: "the router to be there" });
});
afterAll(() => stack.disposeAsync());

const { toolbus, follow } = commandsAt(() => suite.url);
const applyAgent = () => suite.connection.client(AgentService).applyAgent({ agent: { name: "asker" } });
const schema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
const tools = [
  { name: "add", description: "adds one", inputSchemaJson: JSON.stringify(schema) },
  { name: "fail" },
  { name: "hang", timeout: durationFromMs(400) },
  { name: "big" },
];

/** A program that answers `add` with one more and `big` with what it is given, fails in `fail`, and leaves `hang` unanswered. */
async function openCaller(sessionId: string): Promise<Disposable & { readonly asked: string[] }> {
  const { client } = suite.connection;
  await client(SessionService).createSession({ sessionId, agent: "asker" });
  const relay = client(CallerService);
  await relay.declareTools({ sessionId, declaration: { callerId: "app", tools } });
  const leaving = new AbortController();
  const asked: string[] = [];
  const attached = Promise.withResolvers<void>();
  const answer = async () => {
    for await (const { event } of relay.watchCaller({ sessionId }, { signal: leaving.signal })) {
      if (event.case === "attached") attached.resolve();
      if (event.case !== "request") continue;
      const { requestId, tool, argumentsJson } = event.value;
      asked.push(tool);
      if (tool === "hang") continue;
      const value = tool === "big" ? argumentsJson : String((JSON.parse(argumentsJson) as { n: number }).n + 1);
      const outcome =
        tool === "fail" ? ({ case: "error", value: "no" } as const) : ({ case: "resultJson", value } as const);
      await relay.respond({ sessionId, requestId, outcome });
    }
  };
  answer().catch(attached.reject);
  await attached.promise;
  return { asked, [Symbol.dispose]: () => leaving.abort() };
}

async function openSocket(sessionId: string) {
  const path = join(directory, `${sessionId}.sock`);
  const command = follow("caller-socket", sessionId, "--socket", path);
  await until(() => command.written.stdout.includes("Ctrl-C ends it"), { what: "the socket" });
  const end = async () => {
    command.signal("SIGTERM");
    expect((await command.ended).exitCode).toBe(0);
    await expect(lstat(path)).rejects.toThrow("ENOENT");
  };
  return { path, [Symbol.asyncDispose]: end };
}

/** Somebody who speaks JSON-RPC, a line a message. */
async function openPeer(path: string) {
  const socket: Socket = connect(path);
  await once(socket, "connect");
  const lines: string[] = [];
  const said: Record<string, unknown>[] = [];
  void (async () => {
    for await (const line of readLines(socket)) {
      lines.push(line);
      said.push(JSON.parse(line) as Record<string, unknown>);
    }
  })();
  return {
    socket,
    lines,
    said,
    send: (frame: unknown) => socket.write(`${typeof frame === "string" ? frame : JSON.stringify(frame)}\n`),
    answerTo: (id: unknown) => until(() => said.find((one) => one.id === id), { what: `the answer to ${id}` }),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

const call = (id: number, tool: string, given: object = {}) => ({
  ...{ jsonrpc: "2.0", id, method: "caller_tool" },
  params: { tool, arguments: given },
});
const failed = (id: unknown, code: number, message = expect.any(String)) => ({
  ...{ jsonrpc: "2.0", id },
  error: { code, message },
});

it("CTR-9 a peer hears what is declared, and calls it many at a time by its bare name", async () => {
  using _caller = await openCaller("many");
  await using socket = await openSocket("many");
  expect((await lstat(socket.path)).mode & 0o777).toBe(0o600);
  using peer = await openPeer(socket.path);
  await until(() => peer.said.length === 1, { what: "the declaration" });
  const config = {
    caller_id: "app",
    tools: expect.arrayContaining([{ name: "add", description: "adds one", inputSchema: schema }]),
  };
  expect(peer.said[0]).toEqual({ jsonrpc: "2.0", method: "caller_tools_config", params: config });
  peer.send(call(0, "hang"));
  for (let id = 1; id <= 100; id++) peer.send(call(id, "add", { n: id }));
  for (let id = 1; id <= 100; id++) expect(await peer.answerTo(id)).toEqual({ jsonrpc: "2.0", id, result: id + 1 });
  expect(await peer.answerTo(0)).toEqual(failed(0, -32_002, expect.stringMatching(/app_hang.*timed out after 400ms/)));

  peer.send({ method: "caller_tool", params: { tool: "add", arguments: { n: 1 } } });
  expect(await peer.answerTo(null)).toEqual({ jsonrpc: "2.0", id: null, result: 2 });

  await suite.connection
    .client(CallerService)
    .declareTools({ sessionId: "many", declaration: { callerId: "app", tools: [{ name: "new" }] } });
  const isNew = ({ method, params }: Record<string, unknown>) =>
    method === "caller_tools_config" && JSON.stringify(params).includes('"new"');
  await until(() => peer.said.some(isNew), { what: "the new declaration" });
});

it("CTR-9 each fault has its code, and the connection survives it", async () => {
  const caller = await openCaller("faults");
  await using socket = await openSocket("faults");
  using peer = await openPeer(socket.path);
  peer.send("{no json");
  expect(await peer.answerTo(null)).toEqual(failed(null, -32_700));
  peer.said.length = 0;
  peer.send("[]");
  expect(await peer.answerTo(null)).toEqual(failed(null, -32_600));
  peer.send({ jsonrpc: "2.0", id: "m", method: "other" });
  expect(await peer.answerTo("m")).toEqual(failed("m", -32_601));
  peer.send({ jsonrpc: "2.0", id: "p", method: "caller_tool", params: { arguments: {} } });
  expect(await peer.answerTo("p")).toEqual(failed("p", -32_602));
  peer.send(call(1, "enter_space"));
  expect(await peer.answerTo(1)).toEqual(failed(1, -32_602, 'the caller declares no tool "enter_space"'));
  peer.send(call(2, "add", { n: "one" }));
  expect(await peer.answerTo(2)).toEqual(failed(2, -32_001, expect.stringMatching(/number/)));
  peer.send(call(3, "fail", { n: 1 }));
  expect(await peer.answerTo(3)).toEqual(failed(3, -32_001, "no"));
  peer.send(JSON.stringify(call(4, "big", { n: 1 })).replace('"n":1', '"n":12345678901234567890'));
  const digits = await until(() => peer.lines.find((line) => line.includes('"id":4')), { what: "the large number" });
  expect(digits).toContain('"result":{"n":12345678901234567890}}');
  peer.send(call(5, "hang"));
  await until(() => caller.asked.includes("hang"), { what: "the caller to be asked" });
  caller[Symbol.dispose]();
  expect(await peer.answerTo(5)).toEqual(failed(5, -32_003, expect.stringMatching(/^Connection lost/)));
  peer.send(call(6, "add", { n: 1 }));
  expect(await peer.answerTo(6)).toEqual(failed(6, -32_003, expect.stringMatching(/^Connection missing/)));
});

it("CTR-9 a socket is its session's alone: a second one is refused, a left-over one replaced, a file kept", async () => {
  using _caller = await openCaller("alone");
  await using socket = await openSocket("alone");
  const second = await toolbus("caller-socket", "alone", "--socket", socket.path);
  expect(second).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("another process listens") });
  const file = join(directory, "file");
  await writeFile(file, "mine");
  expect((await toolbus("caller-socket", "alone", "--socket", file)).stderr).toContain("is no socket");
  const long = join(directory, "x".repeat(120));
  expect((await toolbus("caller-socket", "alone", "--socket", long)).stderr).toContain("at most");
  expect((await toolbus("caller-socket", "nobody", "--socket", `${file}2`)).stderr).toContain("nobody");
});

const main = programOf("cli/main");

it.each([
  ["2025-11-25", "legacy"],
  ["2026-07-28", "auto"],
] as const)(
  "CTR-10 CTR-2 an MCP client of %s is served at once, hears of what is declared, and calls it",
  async (version, mode) => {
    const sessionId = `agent-${version}`;
    const path = join(directory, `${sessionId}.sock`);
    let changes = 0;
    const client = new Client({ name: "agent", version: "1" }, { versionNegotiation: { mode } });
    client.setNotificationHandler("notifications/tools/list_changed", () => {
      changes += 1;
    });
    const args = [main, "agent-client", "--socket", path];
    await client.connect(new StdioClientTransport({ command: process.execPath, args, stderr: "ignore" }));
    expect(client.getNegotiatedProtocolVersion()).toBe(version);
    if (mode === "auto") await client.listen({ toolsListChanged: true });
    expect((await client.listTools()).tools).toEqual([]);

    using _caller = await openCaller(sessionId);
    const socket = await openSocket(sessionId);
    await until(() => changes > 0, { what: "the change of the list" });
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([
      "app_add",
      "app_fail",
      "app_hang",
      "app_big",
    ]);
    const add = (n: unknown) => client.callTool({ name: "app_add", arguments: { n } });
    const results = await Promise.all(Array.from({ length: 50 }, (_, n) => add(n)));
    expect(results.map(({ content }) => content)).toEqual(
      Array.from({ length: 50 }, (_, n) => [{ type: "text", text: String(n + 1) }]),
    );
    expect(await add("one")).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/number/) }] });
    expect(await client.callTool({ name: "app_fail", arguments: { n: 1 } })).toMatchObject({ isError: true });
    await socket[Symbol.asyncDispose]();
    expect(await add(1)).toMatchObject({
      isError: true,
      content: [{ text: expect.stringMatching(/^Connection lost/) }],
    });
    await client.close();
  },
);

it("CTR-7 a session that is closed ends its caller's stream, and says so", async () => {
  const { client } = suite.connection;
  const { session } = await client(SessionService).createSession({ agent: "asker" });
  const sessionId = session?.id ?? "";
  await client(CallerService).declareTools({ sessionId, declaration: { callerId: "app", tools } });
  const stream = client(CallerService).watchCaller({ sessionId })[Symbol.asyncIterator]();
  expect((await stream.next()).value.event.case).toBe("attached");
  await client(SessionService).closeSession({ sessionId });
  await expect(stream.next()).rejects.toThrow(new RegExp(`session ${sessionId} was closed`));
});
