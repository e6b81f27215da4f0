// The death of an MCP server, and of the bridge itself, in the middle of a mix of calls: each ends, in time, with what is true of it.

import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { isAlive, signalProcess } from "../../harness/processes.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";
import { beginCall } from "../fixtures/begun-calls.ts";

const oddServer = fileURLToPath(new URL("../../../services/mcp-bridge/testing/servers/odd-server.ts", import.meta.url));
const sessionId = "in-the-middle";
/** What an answer may take besides: the way over the gateway, on a machine that does other things too. */
const WAY_MS = 500;

let suite: TestSuite;

beforeAll(async () => {
  // confined, its servers have other process ids than those that the test looks for
  const env = { TOOLBUS_CONFINEMENT: "off" };
  suite = await openTestSuite({ services: ["gateway", "tool-router", "mcp-bridge"], isolate: true, env });
  const { client } = suite.connection;
  const server = (name: string) => ({
    ...{ name, provider: "mcp" },
    config: { command: process.execPath, args: [oddServer] },
  });
  const agent = { name: "caller", tools: { use: ["@one/*", "@two/*"] }, sources: [server("one"), server("two")] };
  await until(
    () =>
      client(AgentService)
        .applyAgent({ agent })
        .catch(() => undefined),
    {
      timeoutMs: 60_000,
      what: "the router to be there",
    },
  );
  await client(SessionService).createSession({ sessionId, agent: "caller" });
}, 90_000);
afterAll(() => suite[Symbol.asyncDispose]());

const begin = (name: string, given: object = {}) => beginCall(suite.connection, sessionId, { name, given });

/** Begun calls of both servers, which nothing ends but a death. */
async function midway() {
  const calls = Array.from({ length: 20 }, (_, index) => begin(`@${index % 2 === 0 ? "one" : "two"}/wait`));
  await until(() => calls.every(({ hasBegun }) => hasBegun()), { timeoutMs: 60_000, what: "the calls to begin" });
  return calls;
}

const pidOf = async (source: string) =>
  Number(JSON.parse((await begin(`@${source}/pids`).ended).text.split(",")[0] ?? ""));

describe("in the middle of a mix of calls", () => {
  it("ORCH-8 a server that dies ends its calls within 500 ms as unknown, and no other's", async () => {
    const calls = await midway();
    const killedAtMs = tickedMs();
    const last = begin("@one/die");
    expect((await last.ended).text).toMatch(/^outcome_unknown: .*exited with 3: out of cheese/s);
    for (const { name, ended } of calls.filter(({ name }) => name.startsWith("@one/"))) {
      const { isError, text, atMs } = await ended;
      expect([name, isError, text]).toEqual([name, true, expect.stringMatching(/^outcome_unknown: .*exited with 3/s)]);
      expect(atMs - killedAtMs).toBeLessThan(500 + WAY_MS);
    }
    expect((await begin("@two/echo", { text: "here" }).ended).text).toBe("here");
    expect((await begin("@one/echo", { text: "again" }).ended).text).toBe("again");
    await begin("@two/die").ended;
    for (const { ended } of calls) expect((await ended).text).toMatch(/^outcome_unknown/);
  }, 120_000);

  it("LOOP-14 a bridge that is killed ends its calls within 3 s as unknown, and takes its servers along", async () => {
    const calls = await midway();
    const servers = [await pidOf("one"), await pidOf("two")];
    const bridge = suite.services.find(({ service }) => service === "mcp-bridge");
    const killedAtMs = tickedMs();
    signalProcess(bridge ?? { pid: 0 }, "SIGKILL");
    const during = Array.from({ length: 20 }, (_, index) => begin("@one/echo", { text: `n${index}` }));
    for (const { ended } of calls) {
      const { isError, text, atMs } = await ended;
      expect([isError, text]).toEqual([true, expect.stringMatching(/^outcome_unknown/)]);
      expect(atMs - killedAtMs).toBeLessThan(3_000 + WAY_MS);
    }
    for (const [index, { ended }] of during.entries()) {
      const { isError, text } = await ended;
      expect(isError ? text : `n${index}`).toEqual(
        isError ? expect.stringMatching(/nothing was started|outcome_unknown/) : text,
      );
    }
    await until(() => servers.every((pid) => !isAlive(pid)), { timeoutMs: 5_000, what: "its servers to end" });
    const again = async () => (await begin("@one/echo", { text: "back" }).ended).text === "back";
    await until(again, { timeoutMs: 30_000, what: "calls to be answered again" });
  }, 120_000);
});
