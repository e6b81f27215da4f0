import { type MessageInitShape, toJson } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Command, InvalidArgumentError, Option } from "commander";
import { Health, HealthCheckResponse_ServingStatus as ServingStatus } from "#gen/health/v1/health_pb.ts";
import { McpConnectionSchema } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { RunSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { type ListRunsRequestSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { firstOf } from "#runtime/rpc/paging/first-of.ts";
import { delay } from "#runtime/time/delay.ts";
import { callsForPeople } from "../../answering/calls-for-people.ts";
import { type Connection, globalOptionsOf, openConnection } from "../../connection.ts";
import { toldFromError } from "../../faults/fault.ts";
import { colors, printJson, printLines } from "../../printing/print.ts";
import { printScreen } from "../../printing/terminal.ts";
import { clockText, linesOfMoment, type Moment } from "../../printing/top-picture.ts";

const HOUR_MS = 3_600_000;
/** The largest page of runs, of which as many are shown as the screen has room for. */
const MOST_RUNS = 1_000;

export function addTopCommand(program: Command): void {
  program
    .command("top")
    .description("Show what goes on: runs, what waits, what failed, services and MCP servers, until Ctrl-C")
    .addOption(new Option("--interval <seconds>", "how often it is asked for").argParser(secondsFrom).default(2))
    .option("--once", "show it once; so it is where nobody looks at a terminal")
    .action(top);
}

async function top({ interval, once }: { interval: number; once?: boolean }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const connection = openConnection(global);
  let latest = await lookAround(connection);
  if (once || (process.stdout.isTTY !== true && !global.json)) return show(latest, global.json, printLines);
  let fault = "";
  for (;;) {
    show(latest, global.json, (lines) => printScreen(fault === "" ? lines : [colors.red(fault), ...lines]));
    await delay(interval * 1_000);
    try {
      latest = await lookAround(connection);
      fault = "";
    } catch (error) {
      fault ||= `since ${clockText(Date.now())}: ${toldFromError(error, global.url).message}`;
    }
  }
}

function show(moment: Moment, isJson: boolean | undefined, print: (lines: string[]) => void): void {
  if (isJson) printJson(jsonOf(moment));
  else print(linesOfMoment(moment));
}

function jsonOf({ atMs, services, runs, isMore, failed, waiting, connections }: Moment): object {
  return {
    time: new Date(atMs).toISOString(),
    services: Object.fromEntries(services),
    runs: runs.map((run) => toJson(RunSchema, run)),
    hasMoreRuns: isMore,
    failed: failed.map((run) => toJson(RunSchema, run)),
    waitingForPeople: waiting,
    connections: connections.map((connection) => toJson(McpConnectionSchema, connection)),
  };
}

async function lookAround(connection: Connection): Promise<Moment> {
  const atMs = Date.now();
  const runs = connection.client(RunService);
  const open = [RunState.QUEUED, RunState.IN_PROGRESS, RunState.REQUIRES_ACTION];
  const list = (filter: MessageInitShape<typeof ListRunsRequestSchema>) =>
    firstOf(MOST_RUNS, async (page) => {
      const { runs: items, nextPageToken } = await runs.listRuns({ ...filter, ...page });
      return { items, nextPageToken };
    });
  const [health, going, failed, waiting, servers] = await Promise.all([
    connection.client(Health).list({}),
    list({ states: open }),
    list({ states: [RunState.FAILED], startTime: timestampFromMs(atMs - HOUR_MS) }),
    callsForPeople(connection, ""),
    connection.client(McpServerService).listConnections({ pageSize: MOST_RUNS }),
  ]);
  const statuses = Object.entries(health.statuses).filter(([name]) => name !== "");
  return {
    ...{ url: connection.url, atMs, runs: going.items, isMore: going.nextPageToken !== "", failed: failed.items },
    services: new Map(statuses.map(([name, { status }]) => [name, status === ServingStatus.SERVING])),
    waiting: waiting.length,
    connections: servers.connections,
  };
}

function secondsFrom(text: string): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0.1) throw new InvalidArgumentError("expected seconds, from 0.1");
  return value;
}
