import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { HealthState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { auditOf, type TestBus } from "../../../test/harness/bus.ts";
import { isAlive } from "../../../test/harness/processes.ts";
import { parseServer } from "../servers/source.ts";
import { type Bridge, call, oddSource, openBridge, openTwoBridges, scope, type TwoBridges } from "./bridge.ts";
import { openSessionServer } from "./servers/session-server.ts";

let bridges: TwoBridges;
let bus: TestBus;
let left: Bridge;
let right: Bridge;

beforeAll(async () => {
  bridges = await openTwoBridges();
  ({ bus, left, right } = bridges);
});
afterAll(() => bridges[Symbol.asyncDispose]());

const modulePath = (name: string) =>
  new URL(`../../../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url).pathname;

describe("the provider", () => {
  test("ORCH-6 lists and calls server-everything and server-filesystem", async () => {
    const directory = await mkdtemp(join(tmpdir(), "toolbus-mcp-files-"));
    await writeFile(join(directory, "note.txt"), "written here");
    const everything = {
      name: "everything",
      config: { command: process.execPath, args: [modulePath("server-everything")] },
    };
    const files = {
      name: "files",
      config: { command: process.execPath, args: [modulePath("server-filesystem"), directory] },
    };
    const { tools, sources } = await left.provider.getProvidedTools({ scope, sources: [everything, files] });
    expect(sources).toMatchObject([
      { source: "everything", available: true },
      { source: "files", available: true },
    ]);
    const read = tools.find(({ source, tool }) => source === "files" && tool?.name === "read_text_file")?.tool;
    expect(read).toMatchObject({ effect: Effect.PURE, executionType: ExecutionType.MCP });
    expect((await call(left, everything, "echo", { message: "hi" })).output).toBe("Echo: hi");
    const { output } = await call(left, files, "read_text_file", { path: join(directory, "note.txt") });
    expect(output).toEqual({ content: "written here" });
    const steps = await call(left, everything, "trigger-long-running-operation", { duration: 0.2, steps: 2 });
    expect(steps.progress.length).toBeGreaterThan(0);
    await left.servers.closeConnections(scope);
    await rm(directory, { recursive: true });
  });

  test("ORCH-7 tells a server's title and its instructions, unless its entry omits these", async () => {
    const config = { command: process.execPath, args: [modulePath("server-everything")] };
    const told = { name: "told", config };
    const omitted = { name: "omitted", config: { ...config, omitInstructions: true } };
    const { sources } = await left.provider.getProvidedTools({ scope, sources: [told, omitted] });
    expect(sources[0]?.instructions).toMatch(/^# Everything Server/);
    expect(sources).toMatchObject([
      { source: "told", title: "Everything Reference Server" },
      { source: "omitted", title: "Everything Reference Server", instructions: "" },
    ]);
    await left.servers.closeConnections(scope);
  });

  test("ORCH-6 TOOL-14 a server over stdio and one over HTTP are sources beside each other", async () => {
    await using remote = await openSessionServer();
    const everything = {
      name: "near",
      config: { transport: "stdio", command: process.execPath, args: [modulePath("server-everything")] },
    };
    const sources = [everything, { name: "far", config: { transport: "http", url: remote.url } }];
    const listed = await left.provider.getProvidedTools({ scope, sources });
    expect(listed.sources).toMatchObject([
      { source: "near", available: true },
      { source: "far", available: true },
    ]);
    const echoes = listed.tools.filter(({ tool }) => tool?.name === "echo").map(({ source }) => source);
    expect(echoes.toSorted()).toEqual(["far", "near"]);
    expect((await call(left, sources[0]!, "echo", { message: "by stdio" })).output).toBe("Echo: by stdio");
    expect((await call(right, sources[1]!, "echo", { text: "by HTTP" })).output).toBe("by HTTP");
    expect(remote.sessions.executed).toBe(1);
    await left.servers.closeConnections(scope);
    expect(remote.sessions.count, "its session has been ended").toBe(0);
  });

  test("ORCH-6 a server that fails or hangs delays and hides no other", async () => {
    const hanging = oddSource("hanging", ["hang"], { startupTimeout: "10s" });
    const sources = [
      oddSource("fine"),
      oddSource("broken", ["crash"]),
      { name: "nonsense", config: { command: "x", urls: 1 } },
    ];
    const listed = await left.provider.getProvidedTools({ scope, sources });
    expect(listed.sources).toMatchObject([
      { source: "fine", available: true },
      { source: "broken", available: false, reason: expect.stringMatching(/no configuration found/) },
      { source: "nonsense", available: false, reason: expect.stringMatching(/urls/) },
    ]);
    expect(listed.tools.every(({ source }) => source === "fine")).toBe(true);
    await using brisk = await openBridge(bus, { TOOLBUS_MCP_STARTUP_TIMEOUT: "2s" });
    const startedAtMs = tickedMs();
    const watch = brisk.provider
      .watchProvidedTools({ scope, sources: [oddSource("fine"), hanging] })
      [Symbol.asyncIterator]();
    const first = await watch.next();
    expect(tickedMs() - startedAtMs).toBeLessThan(9_500);
    expect(first.value?.sources).toMatchObject([
      { source: "fine", available: true },
      { source: "hanging", available: false, reason: "it is starting" },
    ]);
    await watch.return?.();
  });

  test("ORCH-6 a connection belongs to one session and agent, unless it is shared", async () => {
    const pids = async (source: object, of: object) =>
      JSON.stringify((await call(left, source, "pids", {}, { scope: of })).output);
    const alone = oddSource("alone");
    const one = await pids(alone, scope);
    expect(await pids(alone, scope)).toBe(one);
    expect(await pids(alone, { ...scope, agent: "a2" })).not.toBe(one);
    expect(await pids(alone, { ...scope, sessionId: "s2" })).not.toBe(one);
    const ofAgent = oddSource("of-agent", [], { share: "agent" });
    const shared = await pids(ofAgent, scope);
    expect(await pids(ofAgent, { ...scope, sessionId: "s2" })).toBe(shared);
    expect(await pids(ofAgent, { ...scope, agent: "a2" })).not.toBe(shared);
    const ofAll = oddSource("of-all", [], { share: "global" });
    expect(await pids(ofAll, { sessionId: "s9", agent: "a9" })).toBe(await pids(ofAll, scope));
  });

  test("any instance answers, and the one that owns the connection executes", async () => {
    const source = oddSource("owned");
    const [here, there] = await Promise.all([call(left, source, "pids"), call(right, source, "pids")]);
    expect(there.output).toEqual(here.output);
    const listed = await right.provider.getProvidedTools({ scope, sources: [source] });
    expect(listed.sources).toMatchObject([{ source: "owned", available: true }]);
    const report = await call(right, source, "report");
    expect(report.progress).toHaveLength(1);
    expect(report.output).toBe("reported");
    await expect(call(right, source, "die")).rejects.toSatisfy((error) => {
      const failure = failureFromConnectError(error);
      return failure.code === "unavailable" && failure.reason === "OUTCOME_UNKNOWN";
    });
  });

  test("KIND-4 a call from a machine whose clock is ahead or behind has the time that is left of it, through another instance too", async () => {
    for (const offMs of [-20_000, 20_000]) {
      const time = { deadline: timestampFromMs(Date.now() + offMs), timeout: durationFromMs(8_000) };
      for (const bridge of [left, right]) {
        const { output } = await call(bridge, oddSource("apart"), "echo", { text: "in time" }, time);
        expect(output).toBe("in time");
      }
    }
    await left.servers.closeConnections(scope);
  });

  test("what a bridge of release 0.2.0 passes on is answered by the owner alone, or the two would ask each other in circles", async () => {
    const source = oddSource("passed-on");
    await call(left, source, "pids");
    const headers = { "toolbus-bridge-hops": "1" };
    const listed = await left.provider.getProvidedTools({ scope, sources: [source] }, { headers });
    expect(listed.sources).toMatchObject([{ source: "passed-on", available: true }]);
    const refused = right.provider.getProvidedTools({ scope, sources: [source] }, { headers });
    await expect(refused).rejects.toSatisfy((error) => failureFromConnectError(error).reason === "OWNER_CHANGED");
  });

  test("another instance takes over what one had that is gone", async () => {
    const source = oddSource("orphan");
    await using passing = await openBridge(bus);
    const before = await call(passing, source, "pids");
    await passing[Symbol.asyncDispose]();
    const after = await call(left, source, "pids");
    expect(after.output).not.toEqual(before.output);
    await until(() => !(before.output as number[]).some(isAlive));
  });

  test("ORCH-7 a watch tells the tools at once and after each change, also through another instance", async () => {
    const source = oddSource("growing");
    await call(left, source, "echo", { text: "open" });
    for (const bridge of [left, right]) {
      const name = `grown-${bridge.instance}`;
      const over = new AbortController();
      const seen: string[][] = [];
      const watching = (async () => {
        for await (const { tools } of bridge.provider.watchProvidedTools(
          { scope, sources: [source] },
          { signal: over.signal },
        )) {
          seen.push(tools.map(({ tool }) => tool?.name ?? ""));
        }
      })();
      await until(() => seen.length > 0);
      await call(left, source, "grow", { name });
      await until(() => seen.at(-1)?.includes(name));
      over.abort();
      await expect(watching).rejects.toMatchObject({ code: Code.Canceled });
    }
  });

  test("a source that says nothing and was not applied is not found", async () => {
    await expect(call(left, { name: "unknown" }, "echo")).rejects.toMatchObject({ code: Code.NotFound });
  });
});

describe("servers that every agent can use", () => {
  test("are applied, offered by themselves, listed and deleted, by way of any instance", async () => {
    const { name, config } = oddSource("applied.one");
    await left.servers.applyMcpServer({ server: parseServer(name, config) });
    await until(async () => (await right.provider.getProvidedTools({ scope, sources: [] })).tools.length > 0);
    const { tools } = await right.provider.getProvidedTools({ scope, sources: [] });
    expect(new Set(tools.map(({ source }) => source))).toEqual(new Set([name]));
    expect((await call(right, { name }, "echo", { text: "applied" })).output).toBe("applied");
    const { servers } = await left.servers.listMcpServers({});
    expect(servers).toMatchObject([
      { server: { name, transport: { case: "stdio", value: { command: config.command } } }, origin: "rpc" },
    ]);
    expect((await right.servers.getMcpServer({ name })).server).toEqual(servers[0]);
    const { connections } = await left.servers.listConnections({});
    expect(connections.find((connection) => connection.server === name)).toMatchObject({
      health: HealthState.HEALTHY,
      ...scope,
    });
    await right.servers.deleteMcpServer({ name });
    await until(async () => (await left.servers.listMcpServers({})).servers.length === 0);
    await expect(left.servers.deleteMcpServer({ name })).rejects.toMatchObject({ code: Code.NotFound });
  });

  test("ORCH-11 who applied and who removed one is on the trail", async () => {
    const { name, config } = oddSource("audited");
    await left.servers.applyMcpServer({ server: parseServer(name, config), validateOnly: true });
    await left.servers.applyMcpServer({ server: parseServer(name, config) });
    await left.servers.applyMcpServer({ server: parseServer(name, config) });
    await right.servers.deleteMcpServer({ name });
    const told = async () => {
      const events = await auditOf(bus, AuditKind.CONFIGURED);
      return events.filter(({ tool }) => tool === name).map((one) => one.message);
    };
    const change = (what: string) => `MCP server ${name} was ${what} by local`;
    await until(async () => String((await told()).toSorted()) === `${change("applied")},${change("removed")}`);
  });

  test("BUS-1 of editors who know the same revision, at two bridges at once, one wins and all others are told", async () => {
    const name = "raced";
    let expectedRevision = 0n;
    for (let round = 0; round < 3; round++) {
      const tries = await Promise.allSettled(
        Array.from({ length: 20 }, (_, index) => {
          const server = parseServer(name, { url: `http://127.0.0.1:1/${round}/${index}` });
          return (index % 2 ? left : right).servers.applyMcpServer({ server, expectedRevision });
        }),
      );
      const won = tries.flatMap((one) => (one.status === "fulfilled" ? [one.value.server] : []));
      const lost = tries.flatMap((one) => (one.status === "rejected" ? [failureFromConnectError(one.reason)] : []));
      expect([won.length, lost.length]).toEqual([1, 19]);
      const metadata = { name, current_revision: `${won[0]?.revision}` };
      for (const failure of lost)
        expect(failure).toMatchObject({ code: "aborted", reason: "REVISION_MISMATCH", metadata });
      for (const { servers } of [left, right]) expect((await servers.getMcpServer({ name })).server).toEqual(won[0]);
      for (const { servers } of [left, right]) expect((await servers.listMcpServers({})).servers).toEqual(won);
      expectedRevision = won[0]?.revision ?? 0n;
    }
    const tried = { server: parseServer(name, { command: "x" }), validateOnly: true };
    expect((await left.servers.applyMcpServer(tried)).server).toMatchObject({
      server: tried.server,
      revision: expectedRevision,
    });
    expect((await left.servers.getMcpServer({ name })).server?.server?.transport.case).toBe("http");
    await expect(right.servers.deleteMcpServer({ name, expectedRevision: 1n })).rejects.toMatchObject({
      code: Code.Aborted,
    });
    await right.servers.deleteMcpServer({ name, expectedRevision });
    await expect(left.servers.getMcpServer({ name })).rejects.toMatchObject({ code: Code.NotFound });
  });

  test("are refused when they cannot be used", async () => {
    const refused = left.servers.applyMcpServer({ server: { name: "unreachable" } });
    await expect(refused).rejects.toMatchObject({ code: Code.InvalidArgument });
  });

  test("are told to a watch when they come and go", async () => {
    const over = new AbortController();
    const seen: string[][] = [];
    const watching = (async () => {
      for await (const { sources } of right.provider.watchProvidedTools({ scope }, { signal: over.signal })) {
        seen.push(sources.map(({ source }) => source));
      }
    })();
    await until(() => seen.length > 0);
    const { name, config } = oddSource("coming");
    await left.servers.applyMcpServer({ server: parseServer(name, config) });
    await until(() => seen.at(-1)?.includes(name));
    await left.servers.deleteMcpServer({ name });
    await until(() => seen.at(-1)?.length === 0);
    over.abort();
    await expect(watching).rejects.toMatchObject({ code: Code.Canceled });
  });
});
