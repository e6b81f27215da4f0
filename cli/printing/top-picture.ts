import { timestampMs } from "@bufbuild/protobuf/wkt";
import { HealthState, type McpConnection } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { type Run, RunState, RunStateSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { invocation } from "../faults/invocation.ts";
import { colors, linesOfTable, nameOfValue, oneLine } from "./print.ts";

/** What goes on in a suite at one moment. */
export interface Moment {
  readonly url: string;
  readonly atMs: number;
  /** Services by name, and whether an instance of each serves. */
  readonly services: ReadonlyMap<string, boolean>;
  /** Runs that have not ended. */
  readonly runs: readonly Run[];
  /** Whether there are more of them. */
  readonly isMore: boolean;
  /** Runs of the last hour that failed, latest first. */
  readonly failed: readonly Run[];
  /** Calls that wait for people. */
  readonly waiting: number;
  readonly connections: readonly McpConnection[];
}

export function linesOfMoment(moment: Moment): string[] {
  const { url, atMs, services, runs, failed } = moment;
  return [
    `${colors.bold("toolbus")} ${url}  ${clockText(atMs)}  ${servicesText(services)}`,
    figures(moment),
    mcpText(moment.connections),
    "",
    ...(runs.length === 0 ? [colors.dim("no run goes on")] : tableOfRuns(runs, atMs)),
    ...(failed.length === 0 ? [] : ["", ...tableOfFailed(failed.slice(0, 5), atMs)]),
  ];
}

function servicesText(services: ReadonlyMap<string, boolean>): string {
  const down = [...services].filter(([, isUp]) => !isUp).map(([name]) => name);
  if (down.length > 0) return colors.red(`not there: ${down.join(", ")}`);
  return colors.green("all services serve"); // of the contract: no number that anybody has seen elsewhere
}

function figures({ runs, isMore, failed, waiting }: Moment): string {
  const count = (state: RunState) => `${runs.filter((run) => run.state === state).length}${isMore ? "+" : ""}`;
  const parts = [
    `${count(RunState.IN_PROGRESS)} in progress`,
    `${count(RunState.QUEUED)} queued`,
    `${count(RunState.REQUIRES_ACTION)} wait for outputs`,
    marked(waiting, `${waiting} wait for people (${invocation} answers)`, colors.yellow),
    marked(failed.length, `${failed.length} failed in an hour`, colors.red),
  ];
  return `runs  ${parts.join("  ")}`;
}

function mcpText(connections: readonly McpConnection[]): string {
  const trouble = connections.filter(({ health }) => health === HealthState.UNHEALTHY);
  const first = trouble[0];
  const why = first && `  ${first.server}: ${oneLine(first.reason)}`;
  return `mcp   ${connections.length} connections  ${marked(trouble.length, `${trouble.length} unhealthy${why ?? ""}`, colors.red)}`;
}

const marked = (count: number, text: string, colour: (text: string) => string) => (count > 0 ? colour(text) : text);

/** The longest first: what hangs stands where one looks. */
function tableOfRuns(runs: readonly Run[], atMs: number): string[] {
  const rows = runs
    .toSorted((one, other) => startOf(one) - startOf(other))
    .map((run) => [
      ...[run.id, run.agent, nameOfValue(RunStateSchema, run.state), String(run.turnCount)],
      String((run.usage?.inputTokens ?? 0n) + (run.usage?.outputTokens ?? 0n)),
      durationText(atMs - startOf(run)),
      oneLine(run.draft?.text ?? run.requiredCalls.map(({ name }) => name).join(", ")),
    ]);
  return linesOfTable(["RUN", "AGENT", "STATUS", "TURNS", "TOKENS", "FOR", "SAYS"], rows);
}

function tableOfFailed(failed: readonly Run[], atMs: number): string[] {
  const rows = failed.map((run) => [run.id, run.agent, `${durationText(atMs - endOf(run))} ago`, oneLine(run.error)]);
  return linesOfTable(["FAILED", "AGENT", "WHEN", "WHY"], rows);
}

const startOf = ({ createTime }: Run) => (createTime === undefined ? 0 : timestampMs(createTime));
const endOf = (run: Run) => (run.endTime === undefined ? startOf(run) : timestampMs(run.endTime));

/** `12:30:05 UTC` */
export function clockText(ms: number): string {
  return `${new Date(ms).toISOString().slice(11, 19)} UTC`;
}

/** `12s`, `3m05s`, `2h07m` */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const two = (value: number) => String(value).padStart(2, "0");
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3_600)}h${two(Math.floor(seconds / 60) % 60)}m`;
}
