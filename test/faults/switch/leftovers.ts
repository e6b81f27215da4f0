import { readFile } from "node:fs/promises";
import { descendantsOf, stillRunning } from "../../harness/processes.ts";
import type { World } from "./world.ts";

/** The MCP servers that the bridges have started and that run; their watchdog is none. */
export async function serverProcesses({ suite }: World): Promise<number> {
  const bridges = suite.services.filter(({ room }) => room === "mcp-bridge");
  const below = await Promise.all(bridges.map(({ pid }) => (pid === undefined ? [] : descendantsOf(pid))));
  const running = await stillRunning(below.flat());
  const isServer = await Promise.all(running.map(async (pid) => (await commandOf(pid)).includes(SERVER)));
  return isServer.filter(Boolean).length;
}

const SERVER = "whose-server";

async function commandOf(pid: number): Promise<string> {
  return readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => ""); // it has ended meanwhile
}

/** Resident memory of the routers and the bridge together. */
export async function residentMegabytes({ suite }: World): Promise<number> {
  const measured = suite.services.filter(({ room }) => room === "tool-router" || room === "mcp-bridge");
  const each = await Promise.all(measured.map(({ pid }) => (pid === undefined ? 0 : residentKilobytes(pid))));
  return Math.round(each.reduce((sum, one) => sum + one, 0) / 1_024);
}

async function residentKilobytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
}
