// `toolbus mcp <agent>` as the MCP server of clients that start one on stdin and stdout.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { Client as ModernClient } from "@modelcontextprotocol/client";
import { StdioClientTransport as ModernTransport } from "@modelcontextprotocol/client/stdio";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../../cli/connection.ts";
import { runCommand } from "../../../harness/commands/command.ts";
import { programOf } from "../../../harness/programs.ts";
import { openTestSuite } from "../../../harness/suite.ts";
import { type Door, keys, openDoor } from "../fixtures/door.ts";

let door: Door;

beforeAll(async () => {
  door = await openDoor();
}, 120_000);
afterAll(() => door[Symbol.asyncDispose]());

const commandAt = (url: string, agent = "clerk") => ({
  command: process.execPath,
  args: [programOf("cli/main"), "--url", url, "mcp", agent],
  env: { PATH: process.env.PATH ?? "", TOOLBUS_API_KEY: keys.alice },
});

async function openOld(url = door.suite.url) {
  const client = new Client({ name: "old", version: "1" });
  await client.connect(new StdioClientTransport(commandAt(url)));
  return { client, [Symbol.asyncDispose]: () => client.close() };
}

async function openNew(url = door.suite.url) {
  const client = new ModernClient({ name: "new", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new ModernTransport(commandAt(url)));
  return { client, [Symbol.asyncDispose]: () => client.close() };
}

async function openSessions(): Promise<number> {
  const client = openConnection({ url: door.suite.url, apiKey: keys.alice }).client(SessionService);
  const { sessions } = await client.listSessions({ pageSize: 1_000 });
  return sessions.filter(({ state }) => state === SessionState.ACTIVE).length;
}

it.each([
  ["2025-11-25", openOld],
  ["2026-07-28", openNew],
] as const)(
  "DOOR-1 a client of %s lists, calls, sees progress and cancels on stdin and stdout",
  async (era, open) => {
    await using one = await open();
    const client = one.client as Client;
    expect(client.getInstructions()).toContain("The tools of the agent clerk");
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain("all__echo");
    const answer = await client.callTool({ name: "all__echo", arguments: { message: "hi" } });
    expect(answer).toMatchObject({ content: [{ type: "text", text: "Echo: hi" }] });
    const progress: number[] = [];
    const cancel = new AbortController();
    const options = {
      signal: cancel.signal,
      onprogress: ({ progress: n }: { progress: number }) => void progress.push(n),
    };
    const asked = { name: "work__work", arguments: { name: `stdio ${era}` } };
    const called =
      one.client instanceof ModernClient
        ? one.client.callTool(asked, options)
        : one.client.callTool(asked, undefined, options);
    await until(() => progress.length > 2, { what: "progress" });
    cancel.abort("enough");
    await expect(called).rejects.toThrow();
    await door.work.saw(`canceled stdio ${era}`);
  },
  60_000,
);

it("DOOR-1 the session of the command ends with it, and its calls outlive the gateway", async () => {
  const before = await openSessions();
  await using third = await openTestSuite({ ...door.gatewayOptions, restart: true });
  {
    await using one = await openOld(third.url);
    expect(await openSessions()).toBe(before + 1);
    const called = one.client.callTool({ name: "work__work", arguments: { name: "z1" } });
    await door.work.saw("began z1");
    process.kill(third.services[0]!.pid!, "SIGKILL");
    door.work.end("z1");
    expect(await called).toMatchObject({ content: [{ type: "text", text: "z1 is done" }] });
    expect(door.work.log.filter((line) => line === "began z1")).toHaveLength(1);
  }
  await until(async () => (await openSessions()) === before, { timeoutMs: 10_000, what: "the end of the session" });
}, 90_000);

it("DOOR-1 what is written at once before stdin is closed is answered, once, and the session first", async () => {
  const { command, args, env } = commandAt(door.suite.url);
  const clientInfo = { name: "pipe", version: "1" };
  const messages = [
    { id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } },
    { method: "notifications/initialized" },
    { id: 2, method: "tools/list" },
    { id: 3, method: "tools/call", params: { name: "all__echo", arguments: { message: "hi" } } },
  ];
  const run = promisify(execFile)(command, args, { env });
  run.child.stdin?.end(messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join(""));
  const { stdout } = await run;
  const answers: { id?: number; result?: object }[] = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(answers[0]?.id).toBe(1);
  expect(answers.flatMap(({ id, result }) => (id !== undefined && result ? [id] : [])).sort()).toEqual([1, 2, 3]);
  expect(answers.find(({ id }) => id === 3)?.result).toMatchObject({ content: [{ text: "Echo: hi" }] });
}, 60_000);

it("DOOR-1 whatever is written on stdin is answered: early pings, batches, long messages, and what is no message", async () => {
  const { command, args, env } = commandAt(door.suite.url);
  const clientInfo = { name: "pipe", version: "1" };
  const params = { protocolVersion: "2025-03-26", capabilities: {}, clientInfo };
  const message = (given: object) => ({ jsonrpc: "2.0", ...given });
  const long = { name: "nobody__echo", arguments: { message: "m".repeat(11 * 1_024 * 1_024) } };
  const lines = [
    JSON.stringify(message({ id: 0, method: "ping" })),
    JSON.stringify(message({ id: 1, method: "initialize", params })),
    JSON.stringify(message({ method: "notifications/initialized" })),
    JSON.stringify([message({ id: 2, method: "ping" }), message({ id: 3, method: "ping" })]),
    JSON.stringify(message({ id: 4, method: "ping", params: [] })),
    "{",
    "[]",
    JSON.stringify(message({ id: 5, method: "tools/call", params: long })),
    JSON.stringify(message({ id: 6, method: "ping" })),
  ];
  const run = promisify(execFile)(command, args, { env, maxBuffer: 64 * 1_024 * 1_024, timeout: 50_000 });
  run.child.stdin?.end(`${lines.join("\n")}\n`);
  const { stdout } = await run;
  const answers: { id?: number; result?: object; error?: { code: number } }[] = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const answered = (id: number) => answers.find((answer) => answer.id === id);
  for (const id of [0, 2, 3, 6]) expect(answered(id)).toMatchObject({ result: {} });
  expect(answered(4)).toMatchObject({ error: { code: -32_600 } });
  expect(answers.flatMap(({ id, error }) => (id === undefined && error ? [error.code] : []))).toEqual([
    -32_700, -32_600,
  ]);
  expect(answered(5)).toMatchObject({ result: { isError: true } });
}, 60_000);

it("DOOR-1 a line that is too long ends the command in order: what waits is answered, and its session ends", async () => {
  const before = await openSessions();
  const { command, args, env } = commandAt(door.suite.url);
  const clientInfo = { name: "pipe", version: "1" };
  const messages = [
    { id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } },
    { method: "notifications/initialized" },
    { id: 2, method: "tools/call", params: { name: "work__work", arguments: { name: "behind" } } },
  ];
  const run = promisify(execFile)(command, args, { env, timeout: 50_000 });
  const { stdin } = run.child;
  stdin?.on("error", () => {}); // it is closed before the line has ended
  stdin?.write(messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join(""));
  await door.work.saw("began behind");
  stdin?.write(Buffer.alloc(129 * 1_024 * 1_024, "m"));
  const { stdout, stderr, code } = await run.catch((error) => error);
  expect(code).toBe(1);
  expect(stderr).toContain("over the limit");
  const answers = stdout
    .trim()
    .split("\n")
    .map((line: string) => JSON.parse(line));
  const error = { message: expect.stringContaining("over the limit") };
  expect(answers).toContainEqual({ jsonrpc: "2.0", error: { ...error, code: -32_600 } });
  expect(answers).toContainEqual({ jsonrpc: "2.0", id: 2, error: { ...error, code: -32_000 } });
  await until(async () => (await openSessions()) === before, { timeoutMs: 10_000, what: "the end of the session" });
}, 60_000);

it("DOOR-1 what the gateway refuses is told to the client, and the servers are listed without an agent", async () => {
  const client = new Client({ name: "lost", version: "1" });
  const connecting = client.connect(new StdioClientTransport(commandAt(door.suite.url, "clark")));
  await expect(connecting).rejects.toThrow(/there is no agent "clark"/);
  await client.close();
  const key = { env: { TOOLBUS_API_KEY: "the-key-of-olga-herself" } };
  const listed = await runCommand(["--url", door.suite.url, "mcp"], key);
  expect(listed.stdout).toMatch(/^SERVER/);
  const none = await runCommand(["--url", door.suite.url, "mcp", "--session", "nobody"], key);
  expect(none.stdout.trim().split("\n")).toHaveLength(1);
}, 60_000);
