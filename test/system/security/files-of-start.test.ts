// A confined tool of a project that holds agents and nothing else tries to write what the suite, the console or its next start reads.

import { existsSync } from "node:fs";
import { access, mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { confinementFromReader } from "#runtime/config/confinement.ts";
import { readEnvironment } from "#runtime/config/environment.ts";
import { tryConfinement } from "#runtime/lifecycle/open-confinement.ts";
import { until } from "#runtime/time/until.ts";
import { callTool } from "../../attack/suite/call-tool.ts";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { startCommand } from "../../harness/commands/command.ts";
import { programOf } from "../../harness/programs.ts";
import { gatewayAt } from "../access/world.ts";
import { HOSTILE_MCP_SERVER } from "../tools/hostile-programs.ts";

const EVIL = "of-a-tool";
/** What is absent at the start, and what is there. */
const absent = ["ui/confirm.js", "tools/t.json", "workers/w.py", "hosted/h.mjs", "scripts/s.json", ".env", ".npmrc"];
const existing = ["agents/spy.json", "toolbus.yaml", "package.json", "package-lock.json", "node_modules/.bin/toolbus"];
const files = [...absent, ...existing];

let project: string;
const stack = new AsyncDisposableStack();
let url = "";
let run: (script: string) => Promise<string>;

beforeAll(async () => {
  project = await realpath(await mkdtemp(join(tmpdir(), "toolbus-start-")));
  stack.defer(() => rm(project, { recursive: true, force: true }));
  await writeFiles(project, {
    "agents/spy.json": {
      name: "spy",
      model: { provider: "scripted", model: "none.json" },
      mcp: { servers: [{ name: "spies", command: process.execPath, args: [join(project, "spy.mjs")] }] },
      tools: { use: ["@spies/*"] },
    },
    "spy.mjs": HOSTILE_MCP_SERVER,
    "toolbus.yaml": "# of the operator\n",
    "package.json": "{}\n",
    "package-lock.json": "{}\n",
    "node_modules/.bin/toolbus": "#!/bin/sh\n",
  });
  const suite = stack.use(
    startCommand(["--json", "up", "--port", "0"], {
      installed: { program: programOf("cli/main"), cwd: project },
    }),
  );
  const ready = () => /"kind":"ready","url":"(http[^"]+)"/.exec(suite.written.stdout)?.[1];
  url = await until(ready, { timeoutMs: 60_000, what: "the suite to be ready" });
  const by = gatewayAt(url, (await readFile(join(project, ".toolbus/keys/local"), "utf8")).trim());
  const sessionId = "spy";
  await until(
    () =>
      by
        .client(SessionService)
        .createSession({ agent: "spy", sessionId })
        .catch(() => undefined),
    {
      timeoutMs: 60_000,
    },
  );
  run = (script) =>
    callTool(by, {
      sessionId,
      name: "@spies/search_mcp",
      argumentsJson: JSON.stringify({ script: `${script}\ntrue` }),
    });
});
afterAll(() => stack.disposeAsync());

const isConfined = (await tryConfinement(confinementFromReader(readEnvironment(process.env)))).kind === "confined";

/** What holds the tool's words now. */
async function written(): Promise<string[]> {
  const texts = files.map(async (name) => ({
    name,
    text: await readFile(join(project, name), "utf8").catch(() => ""),
  }));
  return (await Promise.all(texts)).filter(({ text }) => text.includes(EVIL)).map(({ name }) => name);
}

test("SEC-3 a confined tool makes and changes nothing that the next start reads, there or not", async () => {
  const write = (name: string) => {
    const path = join(project, name);
    const folder = join(path, "..");
    return `mkdir -p ${folder} && echo ${EVIL} > ${path}
      mv ${path} ${path}.old && echo ${EVIL} > ${path}; rm -f ${path}; echo ${EVIL} > ${path}`;
  };
  const move = (folder: string) =>
    `mv ${folder} ${folder}-old && mkdir -p ${folder}; rm -rf ${folder}; mkdir ${folder}; ln -s /tmp ${folder}`;
  await run(files.map(write).join("\n"));
  const folders = ["agents", "tools", "workers", "hosted", "scripts", "ui", "node_modules"];
  await run([...folders.map((name) => move(join(project, name))), move(project), ...files.map(write)].join("\n"));
  if (!isConfined) return; // it has the rights of its user, as SECURITY.md says
  expect(await written()).toEqual([]);
  expect((await fetch(`${url}/console/ui/confirm.js`)).status).toBe(404);
  for (const name of existing) await access(join(project, name));
});

test("it may write other files of the project", async () => {
  await run(
    `echo mine > ${join(project, "out.txt")}; mkdir ${join(project, "out")}; echo mine > ${join(project, "out/a")}`,
  );
  expect(await readFile(join(project, "out.txt"), "utf8")).toBe("mine\n");
  expect(await readFile(join(project, "out/a"), "utf8")).toBe("mine\n");
});

test("SEC-3 a service that is served alone protects the project before it starts tools", async () => {
  if (process.platform !== "linux") return; // nothing is confined
  const alone = await realpath(await mkdtemp(join(tmpdir(), "toolbus-start-")));
  await using _ = { [Symbol.asyncDispose]: () => rm(alone, { recursive: true, force: true }) };
  const installed = { program: programOf("cli/main"), cwd: alone };
  const env = { NATS_URL: "nats://127.0.0.1:1" };
  const made = () => [".env", "toolbus.yaml", "ui", ".toolbus"].every((name) => existsSync(join(alone, name)));
  {
    await using gateway = startCommand(["serve", "gateway"], { installed, env });
    await Promise.race([
      gateway.ended,
      until(() => gateway.written.stdout !== "", { timeoutMs: 30_000, what: "a line" }),
    ]);
    expect(made(), "it starts no tools").toBe(false);
  }
  await using _bridge = startCommand(["serve", "mcp-bridge"], { installed, env });
  await until(made, { timeoutMs: 30_000, what: "what was absent to be there" });
});
