import { parseArgs } from "node:util";
import { measureBus } from "./bus/measure-bus.ts";
import { measureCall } from "./call/measure-call.ts";
import { measureConsole } from "./console/measure-console.ts";
import { measureDoors } from "./doors/measure-doors.ts";
import { measureLoop } from "./loop/measure-loop.ts";
import { measureMcp } from "./mcp/measure-mcp.ts";
import type { BenchResult } from "./measuring/result.ts";
import { measureParked } from "./parked/measure-parked.ts";
import { measureRecovery } from "./recovery/measure-recovery.ts";
import { measureRelay } from "./relay/measure-relay.ts";
import { measureRouter } from "./router/measure-router.ts";
import { measureStart } from "./start/measure-start.ts";
import { measureWorkers } from "./workers/measure-workers.ts";

const USAGE = `usage: npm run bench -- <bench> [options]

benches:
  bus        what a call costs on the bus, beside bare NATS and HTTP/2
  call       how long a call of a tool takes, over the bus and through the gateway, and what it costs
               --rounds N      how often each way is measured (5)
               --round-ms N    for how long (1000)
  console    how soon the console is painted, how smoothly it shows much, and what it holds after an hour
               --rounds N      how often each is measured (5)
               --deltas N      how many a run has (100000)
  doors      how long an MCP client's call and list take through the gateway, beside mcp-proxy, and what a dead server costs;
               how long a client of responses waits beyond the model, and how many streams one core holds
               --rounds N      how often each way is measured (5)
               --round-ms N    for how long (1000)
  loop       what the durable loop costs a turn, a call, a delta, and in bytes
  mcp        how long a call of an MCP server's tool takes, beside the SDK's own client, and what a session of a server holds
               --rounds N      how often each way is measured (5)
               --round-ms N    for how long (1000)
               --sessions N    how many are opened to see what one holds (20)
  recovery   how long a run stands still when a process dies
  parked     what parked runs cost
               --runs N        how many (100000)
               --warm-up N     of these, before the memory is looked at first (5000)
               --at-once N     how many are on their way at a time (64)
               --wakes N       how many are woken (200)
  router     how long calls take that a service outside answers at once, and what deciding costs
               --calls N       how many (10000)
               --in-flight N   at a time (32)
               --per-second N  how many begin each second where they are paced (200)
  relay      how long a call takes of a tool of the program that opened the session, and how many sessions are held
               --rounds N      how often each way is measured (5)
               --round-ms N    for how long (1000)
               --sessions N    how many are held at once (1000)
  start      how long "toolbus up" and "toolbus --help" of the package take, beside the sources, and what an idle suite holds
               --rounds N      how often each is measured (5)
  workers    how long a call of a Python function takes whose worker is warm, beside a bare pipe
               --rounds N      how often each way is measured (5)
               --round-ms N    for how long (1000)

options:
  --json     one JSON object a line: bench, metric, value, unit, and what it is compared with: baseline, ratio
  --help     this text
`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
    rounds: { type: "string", default: "5" },
    "round-ms": { type: "string", default: "1000" },
    deltas: { type: "string", default: "100000" },
    runs: { type: "string", default: "100000" },
    "warm-up": { type: "string", default: "5000" },
    "at-once": { type: "string", default: "64" },
    wakes: { type: "string", default: "200" },
    sessions: { type: "string" },
    calls: { type: "string", default: "10000" },
    "in-flight": { type: "string", default: "32" },
    "per-second": { type: "string", default: "200" },
  },
});

const onProgress = (message: string) => console.error(message);
const rounds = { rounds: Number(values.rounds), roundMs: Number(values["round-ms"]), onProgress };
const benches: Record<string, () => AsyncIterable<BenchResult>> = {
  bus: measureBus,
  call: () => measureCall(rounds),
  doors: () => measureDoors(rounds),
  console: () =>
    measureConsole({
      rounds: Number(values.rounds),
      runs: 10_000,
      deltas: Number(values.deltas),
      auditEvents: 36_000,
      onProgress,
    }),
  loop: measureLoop,
  mcp: () => measureMcp({ ...rounds, sessions: Number(values.sessions ?? 20) }),
  recovery: measureRecovery,
  parked: () =>
    measureParked({
      runs: Number(values.runs),
      warmUp: Number(values["warm-up"]),
      atOnce: Number(values["at-once"]),
      wakes: Number(values.wakes),
      onProgress,
    }),
  router: () =>
    measureRouter({
      calls: Number(values.calls),
      inFlight: Number(values["in-flight"]),
      perSecond: Number(values["per-second"]),
      onProgress,
    }),
  relay: () => measureRelay({ ...rounds, sessions: Number(values.sessions ?? 1_000) }),
  start: () => measureStart(rounds),
  workers: () => measureWorkers(rounds),
};

if (values.help) {
  console.log(USAGE);
  process.exit();
}
const measure = benches[positionals[0] ?? ""];
if (!measure) {
  console.error(USAGE);
  process.exit(2);
}

const rows: BenchResult[] = [];
for await (const result of measure()) {
  if (values.json) console.log(JSON.stringify(result));
  else rows.push(result);
}
if (!values.json) console.table(rows);
