// Servers that a program like npx fetches before it starts them; here a program of its name, which takes as long as the test wants.

import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { isAlive } from "../../../test/harness/processes.ts";
import { type Bridge, call, openBridge } from "./bridge.ts";
import { oddServer } from "./connection.ts";

const script = `#!/bin/sh
echo $$ >> "$0.started"
[ -e "$0.fetched" ] || echo $$ >> "$0.fetching"
printf '\\033[32mfetching 3 packages\\033[39m\\n}\\n\\n' >&2
until [ -e "$0.fetched" ]; do sleep 0.02; done
exec "$@"
`;

let bus: TestBus;
let bridge: Bridge;
let directory: string;
let npx: string;

beforeAll(async () => {
  bus = await openTestBus();
  bridge = await openBridge(bus, { TOOLBUS_MCP_STARTUP_TIMEOUT: "400ms", TOOLBUS_CONFINEMENT: "off" });
});
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "toolbus-installing-"));
  npx = join(directory, "npx");
  await writeFile(npx, script);
  await chmod(npx, 0o755);
});
afterAll(async () => {
  await bridge[Symbol.asyncDispose]();
  await bus[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const fetched = () => writeFile(`${npx}.fetched`, "");
const pidsIn = async (file: string) =>
  (await readFile(`${npx}.${file}`, "utf8").catch(() => "")).split("\n").filter(Boolean).map(Number);
const started = () => pidsIn("started");
const fetchedServer = () => ({ name: "files", config: { command: npx, args: [process.execPath, oddServer] } });
const scopeOf = (sessionId: string) => ({ sessionId, agent: "a1" });

test("ORCH-6 a server that is still being fetched is told as starting, with its last words, and waited for", async () => {
  const watching = new AbortController();
  const request = { scope: scopeOf("watched"), sources: [fetchedServer()] };
  const told: { available: boolean; starting?: boolean; reason: string }[] = [];
  const watch = (async () => {
    for await (const { sources } of bridge.provider.watchProvidedTools(request, { signal: watching.signal }))
      told.push(...sources);
  })().catch(() => {}); // left by its signal
  await until(() => told.some(({ reason, starting }) => starting && reason.endsWith("fetching 3 packages")));
  await fetched();
  await until(() => told.at(-1)?.available === true);
  expect(told.at(-1)).toMatchObject({ starting: false, reason: "" });
  expect(told[0]?.reason).toContain("npx may fetch it first");
  watching.abort();
  await watch;
});

test("ORCH-6 what one session began to fetch goes on when the session ends, and serves the next", async () => {
  const leaving = new AbortController();
  const first = { scope: scopeOf("short"), sources: [fetchedServer()] };
  const left = bridge.provider.getProvidedTools(first, { signal: leaving.signal }).catch(() => {});
  await until(async () => (await started()).length === 1);
  const [pid = 0] = await started();
  leaving.abort();
  await left;
  await bridge.provider.releaseScope({ scope: scopeOf("short") });
  expect(isAlive(pid)).toBe(true);
  const second = bridge.provider.getProvidedTools({ scope: scopeOf("next"), sources: [fetchedServer()] });
  await fetched();
  expect((await second).sources).toMatchObject([{ available: true, starting: false }]);
  const { output } = await call(bridge, fetchedServer(), "pids", {}, { scope: scopeOf("next") });
  expect(output).toContain(pid);
  expect(await started()).toEqual([pid]);
});

test("ORCH-6 sessions that need a server at once do not fetch it at once", async () => {
  const sources = [fetchedServer()];
  const lists = ["one", "two", "three"].map((id) => bridge.provider.getProvidedTools({ scope: scopeOf(id), sources }));
  await until(async () => {
    const { connections } = await bridge.servers.listConnections({});
    return connections.filter(({ reason }) => reason.includes("another session fetches it")).length === 2;
  });
  await fetched();
  for (const { sources } of await Promise.all(lists)) expect(sources).toMatchObject([{ available: true }]);
  expect(await pidsIn("fetching")).toHaveLength(1);
  const ofEach = await Promise.all(
    ["one", "two", "three"].map((id) => call(bridge, fetchedServer(), "pids", {}, { scope: scopeOf(id) })),
  );
  expect(new Set(ofEach.map(({ output }) => String(output))).size, "each session has a process of its own").toBe(3);
});

test("ORCH-10 a fetched server that nobody wants any more is ended when it is there", async () => {
  const leaving = new AbortController();
  const request = { scope: scopeOf("gone"), sources: [fetchedServer()] };
  const left = bridge.provider.getProvidedTools(request, { signal: leaving.signal }).catch(() => {});
  await until(async () => (await started()).length === 1);
  const [pid = 0] = await started();
  leaving.abort();
  await left;
  await bridge.provider.releaseScope({ scope: scopeOf("gone") });
  await fetched();
  await until(() => !isAlive(pid), { what: "the process to be gone" });
});

test("ORCH-6 a program that fetches has a time of its own, whatever the bridge gives others, and the text says so", async () => {
  await using hasty = await openBridge(bus, { TOOLBUS_MCP_INSTALL_TIMEOUT: "300ms", TOOLBUS_CONFINEMENT: "off" });
  const { sources } = await hasty.provider.getProvidedTools({ scope: scopeOf("late"), sources: [fetchedServer()] });
  expect(sources[0]?.reason).toMatch(
    /not initialised within 300 ms, which npx has to fetch and start it \(TOOLBUS_MCP_INSTALL_TIMEOUT, or startupTimeout of the server\).*fetching 3 packages/,
  );
});
