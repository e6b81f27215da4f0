// Resources, prompts and completion of a real MCP server, by the command line and at the gateway.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { runCommand } from "../../harness/commands/command.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const scripts = fileURLToPath(new URL("../fixtures/first-try", import.meta.url));
const everything = fileURLToPath(
  new URL("../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url),
);

let suite: TestSuite;
const it = test.concurrent; // most of the time they wait for servers that start

beforeAll(async () => {
  suite = await openTestSuite({ env: { TOOLBUS_SCRIPTS: scripts } });
  const model = { provider: "scripted", model: "reader.json" };
  const config = { command: process.execPath, args: [everything], share: "agent" };
  const server = { name: "all", provider: "mcp", config };
  const other = { name: "files", provider: "worker", config: { file: "none.py" } };
  const agents = suite.connection.client(AgentService);
  await agents.applyAgent({ agent: { name: "reader", model, tools: { use: ["@all/*"] }, sources: [server, other] } });
  const painter = { provider: "scripted", model: "painter.json" };
  await agents.applyAgent({
    agent: { name: "painter", model: painter, tools: { use: ["@all/*"] }, sources: [server] },
  });
  const slowly = `sleep 3; exec "${process.execPath}" "${everything}"`;
  const late = { name: "all", provider: "mcp", config: { command: "sh", args: ["-c", slowly], startupTimeout: "60s" } };
  await agents.applyAgent({ agent: { name: "late", model, tools: { use: ["@all/*"] }, sources: [late] } });
  const sleeping = { command: "sleep", args: ["600"], startupTimeout: "300s" };
  const never = { name: "all", provider: "mcp", config: sleeping };
  await agents.applyAgent({ agent: { name: "never", model, tools: { use: ["@all/*"] }, sources: [never] } });
  const broken = { name: "all", provider: "mcp", config: { command: "false" } };
  await agents.applyAgent({ agent: { name: "broken", model, tools: { use: ["@all/*"] }, sources: [broken] } });
  const tools = { use: ["@all/*"], allowed: { names: ["@all/echo"] } };
  await agents.applyAgent({ agent: { name: "narrow", model, tools, sources: [server] } });
});
afterAll(() => suite[Symbol.asyncDispose]());

const toolbus = (...args: string[]) => runCommand(["--url", suite.url, ...args, "--agent", "reader"]);

it("BUS-1 resources and their templates are listed, and read, by the command line", async () => {
  const listed = await toolbus("resources", "list", "all");
  expect(listed).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/features\.md/) });
  const [uri = ""] = /demo:\S+features\.md/.exec(listed.stdout) ?? [];
  expect((await toolbus("resources", "read", "all", uri)).stdout).toMatch(/Everything Server - Features/);
  const templates = await toolbus("resources", "templates", "all");
  expect(templates.stdout).toContain("demo://resource/dynamic/text/{resourceId}");
  const blob = await toolbus("resources", "read", "all", "demo://resource/dynamic/blob/1");
  expect(blob.stdout).toContain("Resource 1");
  const missing = await toolbus("resources", "read", "all", "demo://nothing");
  expect(missing.exitCode).not.toBe(0);
  expect(missing.stderr).toContain("all refuses resources/read");
});

it("BUS-1 prompts are listed, filled in and completed by the command line", async () => {
  expect((await toolbus("prompts", "list", "all")).stdout).toMatch(/args-prompt +city \[state\]/);
  const filled = await toolbus("prompts", "get", "all", "args-prompt", "city=Oslo");
  expect(filled.stdout).toMatch(/user: .*Oslo/);
  const completed = await toolbus("prompts", "complete", "all", "completable-prompt", "department=Eng");
  expect(completed.stdout.trim()).toBe("Engineering");
  const names = await toolbus("prompts", "complete", "all", "completable-prompt", "name=", "department=Sales");
  expect(names.stdout.trim().split("\n").length).toBeGreaterThan(1);
  const numbers = await toolbus(
    "prompts",
    "complete",
    "all",
    "demo://resource/dynamic/text/{resourceId}",
    "resourceId=7",
  );
  expect(numbers.stdout.trim()).toBe("7");
});

it("ORCH-6 a server that is starting is waited for, and one that cannot start is told as such", async () => {
  const ofLate = (...args: string[]) => runCommand(["--url", suite.url, ...args]);
  const [resources, prompts, explained, refused] = await Promise.all([
    ofLate("resources", "list", "all", "--agent", "late"),
    ofLate("prompts", "list", "all", "--agent", "late"),
    ofLate("explain", "late", "@all/echo"),
    ofLate("prompts", "list", "all", "--agent", "broken"),
  ]);
  expect(resources).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("features.md") });
  expect(prompts).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("args-prompt") });
  expect(explained.stdout).toMatch(/\ncallable by late\n$/);
  expect(refused.stderr).toContain("the MCP server all is unavailable: Connection closed; the process exited with 1");
});

it("ORCH-10 the servers of an agent that is deleted end with it, though a list was their only use", async () => {
  const agents = suite.connection.client(AgentService);
  const source = { name: "all", provider: "mcp", config: { command: process.execPath, args: [everything] } };
  await agents.applyAgent({ agent: { name: "leaver", tools: { use: ["@all/*"] }, sources: [source] } });
  expect((await runCommand(["--url", suite.url, "tools", "--agent", "leaver"])).stdout).toContain("@all/echo");
  const servers = suite.connection.client(McpServerService);
  const standing = async () => (await servers.listConnections({})).connections.filter((one) => one.agent === "leaver");
  expect(await standing()).toHaveLength(1);
  await agents.deleteAgent({ name: "leaver" });
  await until(async () => (await standing()).length === 0, { what: "its server to be gone" });
});

it("ORCH-6 a server that goes on starting holds nobody who asks for its tools, resources or prompts", async () => {
  const ofNever = (...args: string[]) => runCommand(["--url", suite.url, ...args]);
  const [resources, prompts, explained] = await Promise.all([
    ofNever("resources", "list", "all", "--agent", "never"),
    ofNever("prompts", "list", "all", "--agent", "never"),
    ofNever("explain", "never", "@all/echo"),
  ]);
  for (const { stderr } of [resources, prompts])
    expect(stderr).toContain("the MCP server all is unavailable: it is starting");
  expect(explained.stdout).toContain("no tool has this name; all cannot be used: it is starting");
}, 60_000);

it("LOOP-8 an image in a result is stored, shown to the model by its reference, and read by the command line", async () => {
  const { stdout, exitCode } = await toolbus("call", "@all/get-tiny-image");
  expect(exitCode).toBe(0);
  const { content } = JSON.parse(stdout);
  expect(content).toMatchObject([{ type: "text" }, { type: "image", mimeType: "image/png" }, { type: "text" }]);
  const { storedReference, bytes } = content[1];
  expect(content[1]).not.toHaveProperty("data");
  const file = join(await mkdtemp(join(tmpdir(), "toolbus-image-")), "tiny.png");
  const written = await runCommand(["--url", suite.url, "calls", "result", storedReference, "--output", file]);
  expect(written).toMatchObject({ exitCode: 0 });
  const image = await readFile(file);
  await rm(dirname(file), { recursive: true });
  expect(image).toHaveLength(bytes);
  expect(image.subarray(1, 4).toString()).toBe("PNG");
  const run = await runCommand(["--url", suite.url, "run", "painter", "look"]);
  expect(run.stdout).toMatch(/I saw Here's the image.*"type":"image","mimeType":"image\/png","storedReference":"\S+"/s);
});

it("ORCH-2 what the policy of a session's agent forbids is refused, and what is no MCP server", async () => {
  const { session } = await suite.connection.client(SessionService).createSession({ agent: "narrow" });
  const content = suite.connection.client(McpContentService);
  const source = { sessionId: session?.id ?? "", source: "all" };
  const reasonOf = (attempt: Promise<unknown>) =>
    attempt.then(
      () => "",
      (error) => failureFromConnectError(error).reason,
    );
  expect(await reasonOf(content.listResources({ source }))).toBe("TOOL_NOT_ALLOWED");
  const read = content.readResource({ source, uri: "demo://resource/dynamic/text/1" });
  await expect(read).rejects.toThrow("may not use the source all: @all/read_resource: not in tools.allowed");
  expect((await content.listPrompts({ source })).prompts.length).toBeGreaterThan(2);
  const reader = (await suite.connection.client(SessionService).createSession({ agent: "reader" })).session;
  const worker = { sessionId: reader?.id ?? "", source: "files" };
  expect(await reasonOf(content.listPrompts({ source: worker }))).toBe("TOOL_NOT_ALLOWED");
  const pages = await Array.fromAsync(pagesOf({ sessionId: reader?.id ?? "", source: "all" }));
  expect(pages.length).toBeGreaterThan(2);
  expect(new Set(pages).size).toBe(pages.length);

  async function* pagesOf(of: typeof source): AsyncGenerator<string> {
    for (let pageToken = ""; ; ) {
      const page = await content.listResources({ source: of, pageSize: 1, pageToken });
      yield* page.resources.map(({ uri }) => uri);
      pageToken = page.nextPageToken;
      if (pageToken === "") return;
    }
  }
});
