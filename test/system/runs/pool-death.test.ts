// The death of a Python worker, and of the worker-pool itself, in the middle of a mix of calls: each ends, in time, with what is true
// of it.

import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { Builtin, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until } from "#runtime/time/until.ts";
import { isAlive, signalProcess } from "../../harness/processes.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";
import { type BegunCall, beginCall } from "../fixtures/begun-calls.ts";

const sessionId = "in-the-middle";
/** What an answer may take besides: the way over the gateway, on a machine that does other things too. */
const WAY_MS = 500;

const TOOL = `# /// script
# dependencies = []
# ///
import os, time
from toolbus_sdk import progress

def wait(name: str, effects: str):
    with open(effects, "a") as file:
        file.write(f"{name} {os.getpid()}\\n")
    progress(0)
    time.sleep(600)

def die():
    os._exit(3)

def echo(text: str):
    return text
`;

import { tickedMs } from "#runtime/time/testing/machine-time.ts";

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let effects: string;

beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-pool-death-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  effects = join(directory, "effects");
  const workers = join(directory, "workers");
  await mkdir(workers);
  for (const name of ["one", "two"]) await writeFile(join(workers, `${name}.py`), TOOL);
  // confined, its workers have other process ids than those that the test looks for
  const env = { TOOLBUS_CONFINEMENT: "off", TOOLBUS_WORKERS: workers };
  const services = ["gateway", "tool-router", "worker-pool"];
  suite = stack.use(await openTestSuite({ services, isolate: true, env }));
  const { client } = suite.connection;
  const shell = {
    ...{ name: "shell", executionType: ExecutionType.BUILTIN },
    builtinPolicy: { builtin: Builtin.SHELL_EXEC, allowedPaths: [directory], allowedCommands: ["sh"] },
  };
  const sources = ["one", "two"].map((name) => ({ name, provider: "worker" }));
  const agent = { name: "caller", tools: { use: ["@one/*", "@two/*", "shell"] }, sources };
  const apply = async () => {
    await client(ToolCatalogService).applyCatalogTool({ tool: shell });
    return client(AgentService).applyAgent({ agent });
  };
  await until(() => apply().catch(() => undefined), { timeoutMs: 60_000, what: "the router to be there" });
  await client(SessionService).createSession({ sessionId, agent: "caller" });
}, 90_000);
afterAll(() => stack.disposeAsync());

const begin = (name: string, given: object = {}) => beginCall(suite.connection, sessionId, { name, given });
const began = async () => (await readFile(effects, "utf8").catch(() => "")).trim().split("\n");

/** Begun calls of both files and of a command, which nothing ends but a death. */
async function midway(round: string): Promise<BegunCall[]> {
  const workers = Array.from({ length: 12 }, (_, index) =>
    begin(`@${index % 2 === 0 ? "one" : "two"}/wait`, { name: `${round}-${index}`, effects }),
  );
  const argv = ["sh", "-c", `echo ${round}-shell $$ >>${effects}; exec sleep 600`];
  const command = begin("shell", { argv });
  const isBegun = async () => (await began()).filter((line) => line.startsWith(round)).length === 13;
  await until(isBegun, { timeoutMs: 60_000, what: "the calls to begin" });
  return [...workers, command];
}

describe("in the middle of a mix of calls", () => {
  it("WORK-9 a worker that dies ends its calls within 500 ms as unknown, and no other's", async () => {
    const calls = await midway("first");
    const killedAtMs = tickedMs();
    void begin("@one/die").ended;
    for (const { name, ended } of calls.filter(({ name }) => name.startsWith("@one/"))) {
      const { isError, text, atMs } = await ended;
      expect([name, isError, text]).toEqual([name, true, expect.stringMatching(/^outcome_unknown: /)]);
      expect(atMs - killedAtMs).toBeLessThan(500 + WAY_MS);
    }
    expect((await begin("@one/echo", { text: "again" }).ended).text).toBe("again");
    expect(calls.filter(({ hasEnded }) => hasEnded()).length).toBe(6);
    await begin("@two/die").ended;
  }, 180_000);

  it("LOOP-14 a pool that is killed ends its calls within 3 s as unknown, and takes all along that it had started", async () => {
    const calls = await midway("second");
    const pids = (await began()).map((line) => Number(line.split(" ")[1])).filter(isAlive);
    expect(pids.length).toBeGreaterThanOrEqual(3);
    const pool = suite.services.find(({ service }) => service === "worker-pool");
    const killedAtMs = tickedMs();
    signalProcess(pool ?? { pid: 0 }, "SIGKILL");
    const during = Array.from({ length: 10 }, (_, index) => begin("@one/echo", { text: `n${index}` }));
    for (const { name, ended } of calls) {
      const { isError, text, atMs } = await ended;
      expect([name, isError, text]).toEqual([name, true, expect.stringMatching(/^outcome_unknown/)]);
      expect(atMs - killedAtMs).toBeLessThan(3_000 + WAY_MS);
    }
    for (const [index, { ended }] of during.entries()) {
      const { isError, text } = await ended;
      expect(text).toMatch(isError ? /nothing was started|outcome_unknown/ : new RegExp(`^n${index}$`));
    }
    await until(() => !pids.some(isAlive), { timeoutMs: 5_000, what: "its workers and commands to end" });
    const again = async () => (await begin("@one/echo", { text: "back" }).ended).text === "back";
    await until(again, { timeoutMs: 60_000, what: "calls to be answered again" });
    const names = (await began()).map((line) => line.split(" ")[0]);
    expect(new Set(names).size, "each was executed once").toBe(names.length);
  }, 180_000);
});
