// The README's path on a machine that has fetched nothing yet: npx takes the server from the registry, into an empty cache. Each
// of the three commands is the first one, with a cache and a home of its own.

import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { runCommand } from "../../../harness/commands/command.ts";
import { openTestSuite, type TestSuite } from "../../../harness/suite.ts";

const scripts = fileURLToPath(new URL("../../fixtures/first-try", import.meta.url));
const FETCHING_MS = 170_000;

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-empty-cache-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  await writeFile(join(directory, "note.txt"), "read at the first try");
  suite = stack.use(await openTestSuite({ env: { TOOLBUS_SCRIPTS: scripts } }));
});
afterAll(() => stack.disposeAsync());

/** An agent whose server has fetched nothing. */
async function freshAgent(name: string): Promise<void> {
  const home = join(directory, name);
  await mkdir(home);
  const args = ["-y", "@modelcontextprotocol/server-filesystem@2026.7.10", directory];
  const config = { command: "npx", args, env: { HOME: home, npm_config_cache: join(home, "npm") } };
  const agent = {
    name,
    model: { provider: "scripted", model: "reader.json" },
    tools: { use: ["@files/*"] },
    sources: [{ name: "files", provider: "mcp", config }],
  };
  await suite.connection.client(AgentService).applyAgent({ agent });
}

const toolbus = (...args: string[]) => runCommand(["--url", suite.url, ...args]);

describe.concurrent("ORCH-6 with an empty cache", () => {
  it("the first `tools` waits for the server and says what it does", { timeout: FETCHING_MS }, async () => {
    await freshAgent("lister");
    const { stdout, stderr } = await toolbus("tools", "--agent", "lister");
    expect(stdout).toContain("@files/read_text_file");
    expect(stdout).not.toContain("cannot be used");
    expect(stderr).toContain("@files: it is starting (npx may fetch it first)");
  });

  it("the first `call` is answered", { timeout: FETCHING_MS }, async () => {
    await freshAgent("caller");
    const path = JSON.stringify({ path: join(directory, "note.txt") });
    const { stdout, stderr, exitCode } = await toolbus("call", "@files/read_text_file", path, "--agent", "caller");
    expect({ stdout, stderr, exitCode }).toMatchObject({ exitCode: 0 });
    expect(stdout).toContain("read at the first try");
  });

  it("the first `run` asks its model when the tools are there", { timeout: FETCHING_MS }, async () => {
    await freshAgent("runner");
    const { stdout } = await toolbus("run", "runner", join(directory, "note.txt"));
    expect(stdout).toContain("read at the first try");
  });
});
