import { create } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import type { RunEvent } from "#gen/toolbus/run/v1/run_event_pb.ts";
import {
  type FunctionCall,
  type Run,
  RunEndReasonSchema,
  RunState,
  RunStateSchema,
} from "#gen/toolbus/run/v1/run_pb.ts";
import {
  CancelRunResponseSchema,
  ForkRunResponseSchema,
  GetRunResponseSchema,
  ListRunsResponseSchema,
  RunService,
  SubmitOutputsResponseSchema,
} from "#gen/toolbus/run/v1/run_service_pb.ts";
import { eventsUpTo, replayFromEvents, textOfItem } from "#runtime/content/replay.ts";
import { textOfAmount } from "#runtime/money/money.ts";
import { firstOf } from "#runtime/rpc/paging/first-of.ts";
import { addSubmissionOption, submissionOf } from "../../answering/submission.ts";
import { type Connection, globalOptionsOf, openConnection } from "../../connection.ts";
import { UsageFault } from "../../faults/fault.ts";
import {
  codeOfValue,
  colors,
  nameOfValue,
  oneLine,
  printJson,
  printLine,
  printLines,
  printMessage,
  printNote,
  printTable,
} from "../../printing/print.ts";
import { endingText } from "../../printing/run-printer.ts";
import { linesOfReplay } from "../../replay/lines.ts";
import { wholeNumber } from "../../requests/numbers.ts";
import { pastTime } from "../../requests/past-time.ts";
import { inputOf, startOnce } from "../../requests/start-once.ts";
import { showToEnd } from "../../watching/show-to-end.ts";
import { watchRun } from "../watch.ts";

const stateNames = Object.values(RunState).filter((value) => typeof value === "number" && value !== 0);
const words = (state: number) => nameOfValue(RunStateSchema, state).replaceAll(" ", "-");

export function addRunsCommand(program: Command): void {
  const runs = program.command("runs").description("List, show, watch, answer, cancel, replay or fork runs");
  runs
    .command("list", { isDefault: true })
    .description("List runs, latest first")
    .option("-s, --session <id>", "only of this session")
    .option("-a, --agent <name>", "only with this agent")
    .option("-t, --tool <name>", "only those whose model called this tool")
    .option("--since <time>", "only accepted after this: 30s, 10m, 2h, 7d ago, or a date", pastTime)
    .option("--until <time>", "only accepted before this", pastTime)
    .addOption(new Option("--state <state...>", "only in these states").choices(stateNames.map(words)))
    .option("-n, --limit <n>", "at most so many", wholeNumber(), 20)
    .action(listRuns);
  runs.command("show").description("Show where a run stands").argument("<id>").action(showRun);
  runs.command("watch").description("Follow a run, as `toolbus watch run` does").argument("<id>").action(watchRun);
  const answer = runs
    .command("answer")
    .description("Give the output of a call that a run waits for")
    .argument("<id>")
    .argument("<call>", "the call's id, as `toolbus runs show` tells it")
    .argument("[output]", "the output as JSON")
    .option("-e, --error <text>", "say that the call failed");
  addSubmissionOption(answer).action(answerRun);
  runs
    .command("cancel")
    .description("Cancel a run, with all that it has called")
    .argument("<id>")
    .option("--reason <text>", "why", "")
    .action(cancelRun);
  runs
    .command("replay")
    .description("Fold a run's log and show it turn by turn")
    .argument("<id>")
    .option("--at <sequence>", "only up to this event", wholeNumber())
    .option("--whole", "cut no text")
    .action(replayRun);
  runs
    .command("fork")
    .description("Start a run that goes on from a point of another one, in a session of its own")
    .argument("<id>")
    .requiredOption("--at <sequence>", "last event that is kept; `toolbus runs replay` shows them", wholeNumber())
    .option("--input <text>", "what to say to it")
    .option("-d, --detach", "only start it and print it")
    .option("--key <key>", "start it once for this key: who asks again with it gets the same run")
    .action(forkRun);
}

interface ListOptions {
  readonly session?: string;
  readonly agent?: string;
  readonly tool?: string;
  readonly since?: Date;
  readonly until?: Date;
  readonly state?: readonly string[];
  readonly limit: number;
}

async function listRuns(options: ListOptions, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const states = stateNames.filter((state) => options.state?.includes(words(Number(state)))) as RunState[];
  const { session = "", agent = "", tool = "", since, until } = options;
  const filter = {
    ...{ sessionId: session, agent, tool, states },
    ...(since && { startTime: timestampFromDate(since) }),
    ...(until && { endTime: timestampFromDate(until) }),
  };
  const service = openConnection(global).client(RunService);
  const { items: runs, nextPageToken } = await firstOf(options.limit, async (page) => {
    const { runs: items, ...rest } = await service.listRuns({ ...filter, ...page });
    return { items, ...rest };
  });
  const response = create(ListRunsResponseSchema, { runs, nextPageToken });
  if (global.json) return printMessage(ListRunsResponseSchema, response);
  const rows = response.runs.map((run) => [
    run.id,
    run.agent,
    words(run.state),
    codeOfValue(RunEndReasonSchema, run.endReason),
    String(run.turnCount),
    run.createTime === undefined ? "" : timestampDate(run.createTime).toISOString(),
    oneLine(run.inputText),
    oneLine(run.outputText || run.error),
  ]);
  printTable(["RUN", "AGENT", "STATUS", "REASON", "TURNS", "ACCEPTED", "ASKED", "SAYS"], rows);
}

async function showRun(runId: string, _options: object, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const response = await openConnection(global).client(RunService).getRun({ runId });
  if (global.json) return printMessage(GetRunResponseSchema, response);
  if (response.run !== undefined) printLines(linesOfRun(response.run));
}

const apart = (count: bigint | undefined, of: string) => (count ? ` (${count} ${of})` : "");

function linesOfRun(run: Run): string[] {
  const { inputTokens = 0n, outputTokens = 0n, cachedInputTokens, reasoningTokens, cost } = run.usage ?? {};
  const read = `${inputTokens} tokens in${apart(cachedInputTokens, "cached")}`;
  const spent = `${read}, ${outputTokens} out${apart(reasoningTokens, "reasoning")}${cost ? `, ${textOfAmount(cost)}` : ""}`;
  return [
    `${colors.bold(run.id)} of ${run.agent} in session ${run.sessionId}`,
    endingText(run),
    `${run.turnCount} turns, ${run.lastSequence + 1} events, ${spent}`,
    ...run.requiredCalls.map(textOfRequired),
    ...run.items.map((item) => `${colors.dim((item.item.case ?? "").padEnd(18))} ${oneLine(textOfItem(item))}`),
    ...(run.draft === undefined ? [] : [`${colors.dim("writes".padEnd(18))} ${oneLine(run.draft.text)}`]),
  ];
}

function textOfRequired({ callId, name, argumentsJson }: FunctionCall): string {
  return `waits for ${name} ${argumentsJson} (${callId})`;
}

async function answerRun(
  runId: string,
  callId: string,
  output: string | undefined,
  { error, submission }: { error?: string; submission?: string },
  command: Command,
): Promise<void> {
  if ((output === undefined) === (error === undefined))
    throw new UsageFault("give either an output as JSON or --error TEXT");
  const global = globalOptionsOf(command);
  const request = { runId, outputs: [{ callId, ...submissionOf(output ?? "", error, submission) }] };
  const response = await openConnection(global).client(RunService).submitOutputs(request);
  if (global.json) return printMessage(SubmitOutputsResponseSchema, response);
  printLine(`answered ${callId}`);
  if (response.run !== undefined) for (const call of response.run.requiredCalls) printLine(textOfRequired(call));
}

async function cancelRun(runId: string, { reason }: { reason: string }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const response = await openConnection(global).client(RunService).cancelRun({ runId, reason });
  if (global.json) return printMessage(CancelRunResponseSchema, response);
  printLine(`${runId} ${words(response.run?.state ?? 0)}`);
}

async function replayRun(runId: string, options: { at?: number; whole?: boolean }, command: Command): Promise<void> {
  const global = globalOptionsOf(command);
  const events = await readLog(openConnection(global), runId, options.at);
  const replay = replayFromEvents(events);
  if (replay === undefined) throw new Error(`run ${runId} has no events`);
  if (global.json) return printJson(replay);
  printLines(linesOfReplay(replay, { isWhole: options.whole ?? false }));
}

/** The events as they stand: a run that goes on is not waited for. */
async function readLog(connection: Connection, runId: string, at?: number): Promise<RunEvent[]> {
  const runs = connection.client(RunService);
  const standing = (await runs.getRun({ runId })).run?.lastSequence ?? 0;
  const last = at ?? standing;
  if (last > standing) throw new UsageFault(`run ${runId} has no event ${last}: its last is ${standing}`);
  const leaving = new AbortController();
  try {
    return await eventsUpTo(last, runs.watchRun({ runId, fromSequence: 0n }, { signal: leaving.signal }));
  } finally {
    leaving.abort();
  }
}

async function forkRun(
  runId: string,
  options: { at: number; input?: string; detach?: boolean; key?: string },
  command: Command,
): Promise<void> {
  if (options.input === "") throw new UsageFault("--input needs a text");
  const global = globalOptionsOf(command);
  const connection = openConnection(global);
  const input = options.input === undefined ? [] : inputOf(options.input);
  const response = await startOnce(options.key, (idempotencyKey) =>
    connection.client(RunService).forkRun({ runId, atSequence: options.at, input, idempotencyKey }),
  );
  const started = response.run;
  if (started === undefined) throw new Error("the suite accepted the run without telling its id");
  if (options.detach) return printMessage(ForkRunResponseSchema, response);
  printNote(`run ${started.id} in session ${started.sessionId}, forked from ${runId} at event ${options.at}`);
  await showToEnd(connection, started.id, { json: global.json });
}
