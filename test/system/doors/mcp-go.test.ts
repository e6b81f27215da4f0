// The door of MCP clients by the official SDK for Go, as client and as server, in each era and over both transports, beside
// those for TypeScript.

import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { openConnection } from "../../../cli/connection.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";
import { openNewClient, openOldClient, type Where } from "./fixtures/clients.ts";

const execute = promisify(execFile);
const source = fileURLToPath(new URL("fixtures/go", import.meta.url));
const revisions = { old: "2025-11-25", new: "2026-07-28" } as const;
type Era = keyof typeof revisions;
const eras = Object.keys(revisions) as Era[];

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let where: Where;
let program: string;

beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-go-mcp-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  program = join(directory, "go-mcp");
  await execute("go", ["build", "-o", program, "."], { cwd: source }); // a fresh machine fetches the modules
  suite = stack.use(await openTestSuite());
  where = { url: suite.url, key: suite.apiKey ?? "", path: "/mcp/gopher" };
  const servers = await Promise.all(eras.flatMap((era) => [stdioServer(era), httpServer(era)]));
  const agents = openConnection({ url: suite.url, apiKey: where.key }).client(AgentService);
  const use = servers.map(({ name }) => `@${name}/echo`);
  await agents.applyAgent({ agent: { name: "gopher", tools: { use, allowed: { names: use } }, sources: servers } });
}, 300_000);
afterAll(() => stack.disposeAsync());

async function stdioServer(era: Era) {
  const config = { command: program, args: ["stdio", revisions[era]] };
  return { name: `${era}-stdio`, provider: "mcp", config };
}

async function httpServer(era: Era) {
  const child = stack.use(await openChildProcess({ command: program, args: ["http", revisions[era]] }));
  const { value: port } = await child.lines()[Symbol.asyncIterator]().next();
  return { name: `${era}-http`, provider: "mcp", config: { url: `http://127.0.0.1:${port}` } };
}

interface Seen {
  readonly revision: string;
  readonly answers: Readonly<Record<string, string>>;
}

const toolOf = (era: Era, transport: string) => `${era}-${transport}__echo`;
const tools = eras.flatMap((era) => ["stdio", "http"].map((transport) => toolOf(era, transport)));

async function byGo(era: Era): Promise<Seen> {
  const args = ["call", where.url + where.path, where.key, revisions[era], ...tools];
  return JSON.parse((await execute(program, args)).stdout);
}

async function byTypeScript(era: Era): Promise<Seen> {
  if (era === "new") {
    await using modern = await openNewClient(where);
    const revision = modern.client.getNegotiatedProtocolVersion() ?? "";
    return { revision, answers: await answersOf(modern.client) };
  }
  await using old = await openOldClient(where);
  return { revision: old.transport.protocolVersion ?? "", answers: await answersOf(old.client) };
}

interface Calling {
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<object>;
}

async function answersOf(client: Calling): Promise<Seen["answers"]> {
  const answerOf = async (name: string) => {
    const { content } = (await client.callTool({ name, arguments: { message: "from TypeScript" } })) as {
      content?: unknown;
    };
    return [name, (content as { text: string }[])[0]?.text ?? ""] as const;
  };
  return Object.fromEntries(await Promise.all(tools.map(answerOf)));
}

const clients = { Go: byGo, TypeScript: byTypeScript };

describe.each(Object.keys(clients) as (keyof typeof clients)[])("DOOR-1 a client by the SDK for %s", (language) => {
  it.each(eras)("of the %s era calls Go's servers of both, over stdio and HTTP, each in its own", async (era) => {
    const { revision, answers } = await clients[language](era);
    expect(revision).toBe(revisions[era]);
    const expected = eras.flatMap((one) =>
      ["stdio", "http"].map((transport) => [toolOf(one, transport), `${revisions[one]}: from ${language}`]),
    );
    expect(answers).toEqual(Object.fromEntries(expected));
  });
});
