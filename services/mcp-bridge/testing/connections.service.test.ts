import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HealthState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { type ChildProcess, openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import type { TestBus } from "../../../test/harness/bus.ts";
import { isAlive } from "../../../test/harness/processes.ts";
import { programOf } from "../../../test/harness/programs.ts";
import {
  type Bridge,
  call,
  clientsOf,
  environmentFor,
  oddSource,
  openBridge,
  openTwoBridges,
  type TwoBridges,
} from "./bridge.ts";

let bridges: TwoBridges;
let bus: TestBus;
let left: Bridge;
let right: Bridge;

/** A bridge in a process of its own. */
async function openProcess(instance: string): Promise<ChildProcess> {
  const bridge = await openChildProcess({
    command: process.execPath,
    args: [programOf("services/mcp-bridge/main")],
    env: environmentFor(bus, instance),
  });
  const lines = bridge.lines()[Symbol.asyncIterator]();
  await until(async () => String((await lines.next()).value).includes('"msg":"ready"'), { timeoutMs: 30_000 });
  return bridge;
}

beforeAll(async () => {
  bridges = await openTwoBridges();
  ({ bus, left, right } = bridges);
});
afterAll(() => bridges[Symbol.asyncDispose]());

describe("connections", () => {
  test("ORCH-8 their health is told, whichever instance holds them", async () => {
    const of = { sessionId: "s-health", agent: "a1" };
    const over = new AbortController();
    let lights: [string, HealthState][] = [];
    const watching = (async () => {
      for await (const { connections } of left.servers.watchConnections(
        { sessionId: of.sessionId },
        { signal: over.signal },
      )) {
        lights = connections.map(({ server, health }) => [server, health]);
      }
    })();
    await call(right, oddSource("healthy"), "echo", { text: "x" }, { scope: of });
    await right.provider.getProvidedTools({ scope: of, sources: [oddSource("ill", ["crash"])] });
    await until(() => lights.some(([name, health]) => name === "healthy" && health === HealthState.HEALTHY));
    await until(() => lights.some(([name, health]) => name === "ill" && health === HealthState.UNHEALTHY));
    const watch = left.servers.watchConnections({ sessionId: of.sessionId }, { signal: over.signal });
    const first = await watch[Symbol.asyncIterator]().next();
    expect(first.value?.connections.map(({ server }: { server: string }) => server)).toEqual(["healthy", "ill"]);
    expect(new Set(first.value?.connections.map(({ id }: { id: string }) => id)).size).toBe(2);
    await left.servers.closeConnections(of);
    await until(() => !lights.some(([name]) => name === "healthy"));
    over.abort();
    await expect(watching).rejects.toMatchObject({ code: Code.Canceled });
  });

  test("ORCH-10 releasing a scope ends its servers on every instance, and nothing else", async () => {
    const of = { sessionId: "s-release", agent: "a1" };
    const pids = async (bridge: Bridge, name: string, more: JsonObject = {}) =>
      (await call(bridge, oddSource(name, [], more), "pids", {}, { scope: of })).output as number[];
    const own = [...(await pids(left, "first")), ...(await pids(right, "second"))];
    const shared = await pids(left, "kept", { share: "global" });
    const { closedCount: closed } = await left.servers.closeConnections(of);
    expect(closed).toBe(2);
    expect(own.some(isAlive)).toBe(false);
    expect(shared.every(isAlive)).toBe(true);
  });

  test("SEC-6 of processes each principal has its share, of which the one that is idle longest gives way", async () => {
    await using small = await openBridge(bus, { TOOLBUS_SHARE_PROCESSES: "2" });
    const over = new AbortController();
    const of = (sessionId: string, principal = "mallory") => ({ scope: { sessionId, agent: "a1", principal } });
    const own = oddSource("own");
    const ask = (sessionId: string, principal?: string, source = own, tool = "pids", args = {}) =>
      call(small, source, tool, args, of(sessionId, principal)).then(({ output }) => output as number[]);
    const offers: (boolean | undefined)[] = [];
    const watching = (async () => {
      const watch = small.provider.watchProvidedTools({ ...of("m1"), sources: [own] }, { signal: over.signal });
      for await (const { sources } of watch) offers.push(sources[0]?.available);
    })().catch(() => {});
    await until(() => offers.at(-1) === true);
    const [m1, m2] = [await ask("m1"), await ask("m2")];
    const others = [await ask("a1", "alice"), await ask("m3", "mallory", oddSource("own", [], { share: "global" }))];
    expect([m1, m2, ...others].flat().every(isAlive)).toBe(true);

    const m3 = await ask("m3"); // m1 is watched, and not opened again for that
    await until(() => !m1.some(isAlive));
    expect([offers.at(-1), [m2, m3, ...others].flat().every(isAlive)]).toEqual([true, true]);
    const busy = ["m2", "m3"].map((session, n) => ask(session, "mallory", own, "wait", { ms: 2_000 + 500 * n }));
    await delay(500);
    await expect(ask("m1")).rejects.toMatchObject({ code: Code.ResourceExhausted });
    await Promise.all(busy);
    expect((await ask("m1")).every(isAlive)).toBe(true);
    await until(() => !m2.some(isAlive));
    over.abort();
    await watching;
  });

  test("SEC-6 of one program eight processes start at a time, and one that hangs delays no other", async () => {
    const folder = await mkdtemp(join(tmpdir(), "toolbus-starts-"));
    const over = new AbortController();
    const start = (name: string, sessionId: string) => {
      const begins = `require("node:fs").appendFileSync("${folder}/${name}", "."); process.stdin.resume()`;
      const sources = [{ name, config: { command: process.execPath, args: ["-e", begins] } }];
      const asked = { scope: { sessionId, agent: "a1", principal: "alice" }, sources };
      left.provider.getProvidedTools(asked, { signal: over.signal }).catch(() => {});
    };
    const begun = async (name: string) => (await readFile(join(folder, name), "utf8").catch(() => "")).length;
    for (let n = 0; n < 12; n += 1) start("mute", `hangs-${n}`);
    await until(async () => (await begun("mute")) >= 8);
    start("other", "hangs-0");
    await until(async () => (await begun("other")) === 1);
    expect(await begun("mute")).toBe(8);
    const { connections } = await left.servers.listConnections({ sessionId: "hangs-11" });
    expect(connections[0]?.reason).toContain("in its turn");
    await until(async () => (await begun("mute")) === 12, { timeoutMs: 5_000 });
    over.abort();
    await Promise.all([...Array(12).keys()].map((n) => left.servers.closeConnections({ sessionId: `hangs-${n}` })));
    await rm(folder, { recursive: true });
  });

  test("SEC-6 programs that hang, in however many sessions, leave a turn for what another principal starts", async () => {
    const folder = await mkdtemp(join(tmpdir(), "toolbus-turns-"));
    const over = new AbortController();
    const start = (name: string, sessionId: string, principal: string) => {
      const args = ["-c", `printf %s ${name[0]} >> ${folder}/order; exec cat`, name];
      const asked = {
        scope: { sessionId, agent: "a1", principal },
        sources: [{ name, config: { command: "sh", args } }],
      };
      left.provider.getProvidedTools(asked, { signal: over.signal }).catch(() => {});
    };
    const sessions = Array.from({ length: 8 }, (_, n) => `turns-${n}`);
    for (const session of sessions) for (let n = 0; n < 8; n += 1) start(`mute-${n}`, session, "mallory");
    start("fresh", "turns-of-hers", "mallory");
    start("alice", "turns-of-alice", "alice");
    const order = () => readFile(join(folder, "order"), "utf8").catch(() => "");
    await until(async () => (await order()).includes("a"));
    expect((await order()).indexOf("a")).toBeLessThan(32);
    await until(async () => (await order()).includes("f"));
    expect((await order()).indexOf("f"), "whose principal has many that hang").toBeLessThan(28 + 8 + 4);
    over.abort();
    await Promise.all(
      [...sessions, "turns-of-hers", "turns-of-alice"].map((sessionId) => left.servers.closeConnections({ sessionId })),
    );
    await rm(folder, { recursive: true });
  });

  test("that nobody uses are closed after the idle time", async () => {
    await using brief = await openBridge(bus, { TOOLBUS_MCP_IDLE_TIMEOUT: "50ms" });
    const { output } = await call(brief, oddSource("idle"), "pids");
    await until(() => !(output as number[]).some(isAlive));
    expect((await call(brief, oddSource("idle"), "echo", { text: "again" })).output).toBe("again");
  });

  test("ORCH-8 those of a bridge that is busy for a moment are listed all the same, and of one that was killed no more", async () => {
    const of = { sessionId: "s-busy", agent: "a1" };
    await using bridge = await openProcess("busy");
    await call(clientsOf(bus, "busy"), oddSource("of-busy"), "echo", { text: "x" }, { scope: of });
    const listed = async () => (await left.servers.listConnections({ sessionId: of.sessionId })).connections;
    expect(await listed()).toHaveLength(1);
    process.kill(bridge.pid, "SIGSTOP");
    const asked = listed();
    await delay(500);
    process.kill(bridge.pid, "SIGCONT");
    expect(await asked).toMatchObject([{ server: "of-busy", health: HealthState.HEALTHY }]);

    const over = new AbortController();
    const lights = left.servers.watchConnections({ sessionId: of.sessionId }, { signal: over.signal });
    const told = lights[Symbol.asyncIterator]();
    expect((await told.next()).value?.connections).toHaveLength(1);
    process.kill(bridge.pid, "SIGKILL");
    expect((await told.next()).value?.connections).toEqual([]);
    expect(await listed()).toEqual([]);
    over.abort();
  });

  test.for(["SIGTERM", "SIGKILL"] as const)(
    "ORCH-10 %s of the bridge leaves no server and none of its children",
    { timeout: 60_000 },
    async (signal) => {
      const instance = `victim-${signal.toLowerCase()}`;
      await using bridge = await openProcess(instance);
      const { output } = await call(clientsOf(bus, instance), oddSource(instance, ["deaf"]), "pids");
      const pids = output as number[];
      expect(pids.map(isAlive)).toEqual([true, true]);
      process.kill(bridge.pid, signal);
      const exit = await bridge.exited;
      if (signal === "SIGTERM") expect(exit.code).toBe(0);
      await until(() => !pids.some(isAlive), { what: "the servers to be gone", timeoutMs: 15_000 });
    },
  );
});
