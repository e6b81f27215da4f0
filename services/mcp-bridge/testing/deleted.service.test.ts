import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { openTwoBridges, scope } from "./bridge.ts";

test("ORCH-10 a server that is deleted is stopped everywhere, also while it is followed, and is not started again", async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-deleted-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(directory, { recursive: true }) }; // once nobody starts the server
  await using bridges = await openTwoBridges();
  const { left, right } = bridges;
  const path = join(directory, "starts");
  const starts = async () => (await readFile(path, "utf8").catch(() => "")).length; // none yet
  const args = ["-c", `printf x >> ${path}; exit 1`];
  const server = { name: "failing", transport: { case: "stdio" as const, value: { command: "sh", args } } };
  await left.servers.applyMcpServer({ server });

  const leaving = new AbortController();
  const statuses: string[] = [];
  const follow = async (sources: { name: string }[]) => {
    for await (const told of right.provider.watchProvidedTools({ scope, sources }, { signal: leaving.signal }))
      statuses.push(told.sources.map(({ source, reason }) => `${source}: ${reason}`).join());
  };
  const following = Promise.allSettled([follow([]), follow([{ name: "failing" }])]);
  await until(async () => (await starts()) >= 3, { timeoutMs: 20_000, what: "the server to fail a few times" });

  await left.servers.deleteMcpServer({ name: "failing" });
  const connections = async () => (await left.servers.listConnections({})).connections;
  await until(async () => (await connections()).length === 0, { what: "its connections to be gone" });
  const before = await starts();
  // Longer than its next attempts would have taken to come: each waits twice as long as the one before.
  await until(() => statuses.filter((text) => text.includes("there is no MCP server failing")).length >= 1);
  const later = performance.now() + 3_000;
  await until(() => performance.now() > later);
  expect(await starts()).toBe(before);

  await left.servers.applyMcpServer({ server });
  await until(async () => (await starts()) > before, { timeoutMs: 10_000, what: "the server to be started anew" });
  leaving.abort();
  await following;
});
