// Lists and calls public MCP servers through a suite of its own: `npx node examples/servers/main.ts [--short] [--network] [NAME …]`.

import { parseArgs } from "node:util";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openConnection } from "../../cli/connection.ts";
import { colors, oneLine, printLine, printNote, printTable } from "../../cli/printing/print.ts";
import { openSuite } from "../../cli/suite/suite.ts";
import { makePlace, openDirectory, openPage } from "./place.ts";
import { lackOf, type PublicServer } from "./public-server.ts";
import { GO } from "./table/go.ts";
import { NPM } from "./table/npm.ts";
import { PYTHON } from "./table/python.ts";
import { call, type Listing, list } from "./trial.ts";

const HEAD = ["SERVER", "MAKE", "TRANSPORT", "REVISION", "TOOLS", "EMPTY", "FULL", "CALL", "TOOK", "RESULT"];
const servers = [...NPM, ...PYTHON, ...GO];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { short: { type: "boolean", default: false }, network: { type: "boolean", default: false } },
});
const unknown = positionals.filter((name) => servers.every((server) => server.name !== name));
if (unknown.length > 0)
  throw new Error(`no server ${unknown.join(", ")}; there are ${servers.map(({ name }) => name).join(", ")}`);
const isWanted = ({ name, short }: PublicServer) =>
  positionals.length > 0 ? positionals.includes(name) : !values.short || short !== undefined;

await using directory = await openDirectory();
await using page = await openPage();
await using suite = await openSuite({
  directory: ".toolbus/servers",
  port: 0,
  reset: true,
  onProgress: printNote,
});
const connection = openConnection(suite);
const outcomes = { tried: 0, skipped: 0, failed: 0 };

/** One line of the table. */
async function tried(server: PublicServer): Promise<string[]> {
  await using stack = new AsyncDisposableStack();
  let listing: Listing | undefined;
  let callMs: number | undefined;
  let result = "ok";
  try {
    const lack = lackOf(server.needs, values.network);
    if (lack !== undefined && server.isNeededToStart) throw new Skipped(lack);
    const place = await makePlace(directory.path, server.name, page.url);
    const trial = { connection, server, place, isShort: values.short };
    listing = await list(trial, stack);
    if (lack !== undefined) throw new Skipped(lack);
    callMs = await call(trial, listing.sessionId);
    outcomes.tried += 1;
  } catch (error) {
    const isSkipped = error instanceof Skipped;
    outcomes[isSkipped ? "skipped" : "failed"] += 1;
    result = `${isSkipped ? "skipped" : "FAILED"}: ${oneLine(messageFromUnknown(error)).slice(0, 400)}`;
  }
  const transport = server.transport ?? (server.url === undefined ? "stdio" : "http");
  const seconds = (ms: number | undefined) => (ms === undefined ? "-" : `${(ms / 1_000).toFixed(1)} s`);
  return [
    ...[server.name, server.make, transport, listing?.revision ?? "-", `${listing?.tools ?? "-"}`],
    ...[values.short ? "-" : seconds(listing?.firstMs), seconds(listing?.secondMs), server.call.tool],
    ...[callMs === undefined ? "-" : `${Math.round(callMs)} ms`, result],
  ];
}

class Skipped extends Error {}

const rows: string[][] = [];
for (const server of servers.filter(isWanted)) {
  printNote(`${server.name}: ${server.make}`);
  rows.push(await tried(server));
}
printTable(HEAD, rows);
const text = `${outcomes.tried} listed and called, ${outcomes.skipped} skipped, ${outcomes.failed} failed`;
printLine(outcomes.failed === 0 ? colors.green(text) : colors.red(text));
if (outcomes.failed > 0) process.exitCode = 1;
