// A tool of each kind that tries to reach what it was not given: what other processes were started with and hold in memory, files
// that hold keys, programs of the suite, the bus and the gateway without a key.

import { chown, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
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
import { projectRoot } from "../../architecture/source-files.ts";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";
import {
  attemptsOn,
  HOSTILE_MCP_SERVER,
  HOSTILE_MODULE,
  HOSTILE_WORKER,
  reachedFrom,
  startsOf,
} from "../tools/hostile-programs.ts";

const canary = `canary-${process.pid}`;

let directory: string;
let suite: TestSuite;
let script: string;

beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "toolbus-hostile-")));
  const spy = {
    name: "spy",
    model: { provider: "scripted", model: "none.json" },
    workers: [{ name: "spy" }],
    mcp: { servers: [{ name: "spies", command: process.execPath, args: [join(directory, "spy.mjs")] }] },
    tools: { use: ["@spy/*", "@spies/*", "search_hosted", "search_shell"] },
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
    "tools/search_hosted.json": { name: "search_hosted", executionType: "hosted" },
    "hosted/search_hosted.mjs": HOSTILE_MODULE,
    "workers/spy.py": HOSTILE_WORKER,
    "spy.mjs": HOSTILE_MCP_SERVER,
    "data/note.txt": "the note",
    "secrets/TOOLBUS_SECRET_PLANTED": canary,
    "secrets/ANTHROPIC_API_KEY": canary,
    "config/toolbus/contexts.json": { elsewhere: { url: "https://toolbus.example", apiKey: canary } },
  });
  suite = await openTestSuite({
    // In a clone the sources are what tools could change; an installed package lies among others, which are all held.
    program: join(projectRoot, "cli/suite/services-program.ts"),
    env: {
      TOOLBUS_AGENTS: join(directory, "agents"),
      TOOLBUS_TOOLS: join(directory, "tools"),
      TOOLBUS_SCRIPTS: join(directory, "models"),
      TOOLBUS_HOSTED: join(directory, "hosted"),
      TOOLBUS_WORKERS: join(directory, "workers"),
      TOOLBUS_SECRETS_DIRECTORY: join(directory, "secrets"),
      XDG_CONFIG_HOME: join(directory, "config"),
      OPENAI_API_KEY: canary,
      TOOLBUS_SECRET_MAIL: canary,
    },
  });
  const { seed } = await readLogin(suite.credentials, ADMIN);
  script = await attemptsOn({
    words: { "the suite's key": suite.apiKey ?? "", "a secret": canary, "the key of the bus": seed },
    directories: [suite.directory, `${directory}/secrets`, `${directory}/config`],
    files: [await fileOfAnother()],
    programs: ["package.json", "services/processes.ts", "cli/main.ts"].map((path) => join(projectRoot, path)),
    starts: startsOf(projectRoot),
    bus: suite.nats.url,
    gateway: suite.url,
  });
  await suite.connection.client(SessionService).createSession({ agent: "spy", sessionId: "spy" });
});
afterAll(async () => {
  await suite?.[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

async function resultOf(name: string): Promise<string | undefined> {
  const argumentsJson =
    name === "search_shell" ? JSON.stringify({ argv: ["sh", "-c", script] }) : JSON.stringify({ script });
  for await (const { event } of suite.connection
    .client(ToolService)
    .callTool({ sessionId: "spy", name, argumentsJson })) {
    if (event.case !== "result" || event.value.isError) continue;
    return event.value.outputJson;
  }
  return undefined;
}

/** Root makes one; anybody else finds one. */
async function fileOfAnother(): Promise<string> {
  if (process.getuid?.() !== 0) return "/etc/shadow";
  const path = join(directory, "of-another");
  await writeFile(path, canary, { mode: 0o600 });
  await chown(path, 65_534, 65_534);
  return path;
}

test.each(["@spy/search_worker", "@spies/search_mcp", "search_hosted", "search_shell"])(
  "SEC-3 %s reaches no key, no process, no program and no door of the suite",
  async (name) => {
    const config = confinementFromReader(readEnvironment(process.env));
    const isConfined = (await tryConfinement(config)).kind === "confined";
    const output = await until(() => resultOf(name).catch(() => undefined), { timeoutMs: 60_000, what: "an answer" });
    const reached = reachedFrom(output);
    if (isConfined) return expect(reached).toEqual([]);
    // Without confinement a tool has the rights of its user, which the log says: SECURITY.md tells what that is.
    expect(reached.join("\n")).toContain("the key of the bus in");
    expect(reached.filter((line) => /^(environment|bus|gateway):/.test(line))).toEqual([]);
  },
);
