// A tool of each kind that searches the machine for what it was not given: what other processes were started with, and files of
// the suite that hold keys.

import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { readLogin } from "#runtime/bus/credentials/directory.ts";
import { ADMIN } from "#runtime/bus/credentials/login.ts";
import { confinementFromReader } from "#runtime/config/confinement.ts";
import { readEnvironment } from "#runtime/config/environment.ts";
import { tryConfinement } from "#runtime/lifecycle/open-confinement.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../cli/connection.ts";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";
import { HOSTILE_MCP_SERVER, HOSTILE_WORKER, searchFor } from "./hostile-programs.ts";

const apiKey = `key-of-the-gateway-${process.pid}`;
const canary = `canary-${process.pid}`;

let directory: string;
let suite: TestSuite;
let script: string;
const connection = () => openConnection({ url: suite.url, apiKey });

beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "toolbus-hostile-")));
  const spy = {
    name: "spy",
    model: { provider: "scripted", model: "none.json" },
    workers: [{ name: "spy" }],
    mcp: { servers: [{ name: "spies", command: process.execPath, args: [join(directory, "spy.mjs")] }] },
    tools: { use: ["@spy/*", "@spies/*", "search_shell"] },
  };
  const policy = {
    name: "shell_exec",
    allowedPaths: [join(directory, "data")],
    allowedCommands: ["sh"],
    timeout: 60_000,
  };
  await writeFiles(directory, {
    "agents/spy.json": spy,
    "models/none.json": { turns: [{ text: "nothing" }] },
    "tools/search_shell.json": { name: "search_shell", kind: "builtin", builtinPolicy: policy },
    "workers/spy.py": HOSTILE_WORKER,
    "spy.mjs": HOSTILE_MCP_SERVER,
    "data/note.txt": "the note",
    "secrets/TOOLBUS_SECRET_PLANTED": canary,
    "secrets/ANTHROPIC_API_KEY": canary,
  });
  suite = await openTestSuite({
    env: {
      TOOLBUS_AGENTS: join(directory, "agents"),
      TOOLBUS_TOOLS: join(directory, "tools"),
      TOOLBUS_SCRIPTS: join(directory, "models"),
      TOOLBUS_HOSTED: join(directory, "hosted"),
      TOOLBUS_WORKERS: join(directory, "workers"),
      TOOLBUS_SECRETS_DIRECTORY: join(directory, "secrets"),
      TOOLBUS_API_KEYS: `spy:${apiKey}`,
      OPENAI_API_KEY: canary,
      TOOLBUS_SECRET_MAIL: canary,
    },
  });
  const { seed } = await readLogin(suite.credentials, ADMIN);
  script = searchFor([apiKey, canary, seed], [suite.directory, `${directory}/secrets`]);
  await connection().client(SessionService).createSession({ agent: "spy", sessionId: "spy" });
});
afterAll(async () => {
  await suite?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

async function resultOf(name: string): Promise<string | undefined> {
  const argumentsJson =
    name === "search_shell" ? JSON.stringify({ argv: ["sh", "-c", script] }) : JSON.stringify({ script });
  for await (const { event } of connection().client(ToolService).callTool({ sessionId: "spy", name, argumentsJson })) {
    if (event.case !== "result" || event.value.isError) continue;
    return JSON.stringify(event.value);
  }
  return undefined;
}

test.each(["@spy/search_worker", "@spies/search_mcp", "search_shell"])(
  "SEC-3 %s finds no key of the gateway, of a model or of the bus, and no secret that it was not given",
  async (name) => {
    const config = confinementFromReader(readEnvironment(process.env));
    const isConfined = (await tryConfinement(config)).kind === "confined";
    const found = await until(() => resultOf(name).catch(() => undefined), { timeoutMs: 60_000, what: "an answer" });
    expect(found).toContain("searched");
    expect(found).not.toContain("/proc/");
    // Nothing hides files of a user from processes of that user where there is no confinement, which the log says then.
    expect(found.includes(directory) || found.includes(suite.directory)).toBe(!isConfined);
  },
);
