import { Code, ConnectError } from "@connectrpc/connect";
import type { Command } from "commander";
import { type Run, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { isForPeople, questionOf } from "#runtime/content/questions.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { formOfAnswer, submissionFromText } from "../../answering/answer-text.ts";
import { type Connection, globalOptionsOf, openConnection } from "../../connection.ts";
import { exitCodes, toldFromError } from "../../faults/fault.ts";
import { invocation } from "../../faults/invocation.ts";
import { oneLine, printNote } from "../../printing/print.ts";
import { createJsonRunPrinter, createRunPrinter } from "../../printing/run-printer.ts";
import { printJson, printText } from "../../printing/terminal.ts";
import { closeUnlessAwaited } from "../../requests/session/close-session.ts";
import { inputOf, startOnce } from "../../requests/start-once.ts";
import { openTypedLines, type TypedLines } from "../../requests/typed-lines.ts";
import { followRun } from "../../watching/run-follower.ts";
import { openWaitingCalls, textOfWaiting } from "../../watching/waiting-calls.ts";

export function addChatCommand(program: Command): void {
  program
    .command("chat")
    .description("Talk with an agent: each line is a run of one session")
    .argument("<agent>", "the agent's name")
    .option("-s, --session <id>", "go on in this session instead of opening one")
    .option("--keep", "leave the session open that it opens; otherwise it is closed with the chat")
    .action(chat);
}

interface Chat {
  readonly connection: Connection;
  readonly agent: string;
  readonly sessionId: string;
  readonly json: boolean | undefined;
  readonly lines: TypedLines;
  /** The run that answers now, which Ctrl-C cancels; else it ends the chat. */
  answering: string | undefined;
  readonly seen: Set<string>;
}

async function chat(agent: string, options: { session?: string; keep?: boolean }, command: Command): Promise<void> {
  const { json, ...global } = globalOptionsOf(command);
  const connection = openConnection(global);
  const sessionId = options.session ?? (await openSession(connection, agent));
  using ending = openEnding();
  using lines = openTypedLines(() => interrupt(current, () => ending.end()));
  const current: Chat = { connection, agent, sessionId, json, lines, answering: undefined, seen: new Set() };
  for (const run of await latestRuns(current)) current.seen.add(run.id);
  printNote(`session ${sessionId} with ${agent}: Ctrl-C stops an answer, Ctrl-D ends the chat`);
  const goOn = `go on: ${invocation} chat ${agent} --session ${sessionId}`;
  let state: RunState = RunState.UNSPECIFIED;
  for (;;) {
    const text = await lines.next("> ", ending.signal);
    if (text === undefined) break;
    if (text.trim() === "") continue;
    try {
      await showWhatCameBetween(current);
      state = await say(current, text);
    } catch (error) {
      printNote(lines.isTerminal ? toldFromError(error, global.url).message : goOn);
      if (!lines.isTerminal) throw error; // somebody who types may find the suite again with the next line
    }
    if (state === RunState.FAILED) process.exitCode = exitCodes.failure;
  }
  if (options.session !== undefined || options.keep) printNote(goOn);
  else await closeUnlessAwaited(connection, sessionId, state);
}

async function openSession(connection: Connection, agent: string): Promise<string> {
  const { session } = await connection.client(SessionService).createSession({ agent });
  return session?.id ?? "";
}

function interrupt({ answering, connection }: Chat, leave: () => void): void {
  if (answering === undefined) {
    leave();
    return;
  }
  const canceled = connection.client(RunService).cancelRun({ runId: answering, reason: "stopped in the chat" });
  canceled.catch((error: unknown) => printNote(`it could not be stopped: ${ConnectError.from(error).rawMessage}`));
}

/** How many runs of its own a session is believed to have had between two lines, at most. */
const mostBetween = 20;

async function latestRuns({ connection, sessionId }: Chat): Promise<Run[]> {
  return (await connection.client(RunService).listRuns({ sessionId, pageSize: mostBetween })).runs;
}

/** A late result, a message or a plan starts runs of the session that nobody asked for here. */
async function showWhatCameBetween(current: Chat): Promise<void> {
  const runs = await latestRuns(current);
  for (const run of runs.toReversed()) {
    if (current.seen.has(run.id)) continue;
    printNote(`meanwhile, run ${run.id}:`);
    await show(current, run);
  }
}

async function say(current: Chat, text: string): Promise<RunState> {
  const { connection, agent, sessionId } = current;
  const { run } = await startOnce(undefined, (idempotencyKey) =>
    connection.client(RunService).createRun({ agent, sessionId, input: inputOf(text), idempotencyKey }),
  );
  return run === undefined ? RunState.UNSPECIFIED : show(current, run);
}

async function show(current: Chat, run: Run): Promise<RunState> {
  const { connection, json, seen } = current;
  seen.add(run.id);
  using ending = openEnding();
  let unanswered: string | undefined;
  const leave = (text: string) => {
    unanswered = text; // nobody types any more, and the run goes on without this chat
    ending.end();
  };
  const asked = createQuestions(current, { signal: ending.signal, leave });
  using waiting = openWaitingCalls(connection, { id: run.id, sessionId: current.sessionId }, asked.add);
  const lines = json ? createJsonRunPrinter(printJson) : createRunPrinter(printText, { saysCompleted: false });
  current.answering = run.id;
  try {
    return await followRun(connection, run.id, {
      signal: ending.signal,
      printer: {
        show(update) {
          lines.show(update);
          waiting.see(update);
        },
      },
    });
  } catch (error) {
    if (unanswered === undefined) throw error;
    printNote(`${unanswered}\nwatch it: ${invocation} watch run ${run.id}`);
    return RunState.REQUIRES_ACTION;
  } finally {
    current.answering = undefined;
    ending.end();
  }
}

/** What is asked of people is answered here, one after the other; programs that watch for a call are named. */
function createQuestions(
  { connection, lines }: Chat,
  { signal, leave }: { signal: AbortSignal; leave: (unanswered: string) => void },
): { add: (call: ToolCall) => void } {
  const open: ToolCall[] = [];

  async function askAll(): Promise<void> {
    for (let call = open[0]; call !== undefined && !signal.aborted; call = open[0]) {
      const { message, url } = questionOf(call);
      const question = `${call.tool}: ${oneLine(message || call.argumentsJson)}${url === "" ? "" : `\n  open ${url}`}`;
      const form = url === "" ? formOfAnswer(call) : "an empty line once it is done";
      printNote(`${question}\n  answer with ${form}, or with ! and why not`);
      const text = await lines.answer("answer> ", signal);
      if (text === undefined) return signal.aborted ? undefined : leave(textOfWaiting(call));
      if (await isSettled(connection, call, text)) open.shift();
    }
  }

  return {
    add(call) {
      if (!isForPeople(call)) return printNote(textOfWaiting(call));
      if (open.push(call) === 1) askAll().catch((error: unknown) => printNote(ConnectError.from(error).rawMessage));
    },
  };
}

/** Answers it; an answer that does not fit is told, and asked for again. */
async function isSettled(connection: Connection, call: ToolCall, text: string): Promise<boolean> {
  const { callId, spaceId } = call;
  try {
    const submission = submissionFromText(text, call);
    if (call.question !== undefined)
      await connection.client(ToolCallService).submitToolResult({ callId, ...submission });
    else await connection.client(SpaceService).answerToolCall({ spaceId, callId, ...submission });
    return true;
  } catch (error) {
    const isUnreadable = error instanceof SyntaxError;
    const { code, rawMessage } = ConnectError.from(error);
    printNote(isUnreadable ? `that is not ${formOfAnswer(call)}` : rawMessage);
    return !isUnreadable && code !== Code.InvalidArgument;
  }
}
