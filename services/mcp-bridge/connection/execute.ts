import { create } from "@bufbuild/protobuf";
import { type Progress, ProtocolError } from "@modelcontextprotocol/client";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { InputKind, type InputRequired, type InputResponses } from "#gen/toolbus/provider/v1/input_pb.ts";
import { type Tool, ToolProgressSchema, ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import type { CallEvent, Executed } from "#runtime/results/joined/joined-calls.ts";
import { providedResult } from "#runtime/results/provided-result.ts";
import { parseToolArguments } from "#runtime/schema/tools/tool-arguments.ts";
import type { MovingDeadline } from "#runtime/time/deadline/moving-deadline.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { LinkKeeper } from "../link/link-keeper.ts";
import type { Outcome } from "../link/outcome/outcome.ts";
import { heldIn } from "../link/outcome/shown-answers.ts";
import type { ReadyPhase } from "../link/phase/phase.ts";
import { followTask } from "../link/tasks/follow-task.ts";
import { type Task, taskIn } from "../link/tasks/tasks.ts";
import { loginNeededIn } from "../servers/login-needed.ts";
import { rootsOf } from "../servers/roots.ts";
import { isOffered } from "../tools/is-offered.ts";
import { resultFromAnswer } from "../tools/result.ts";
import { methodOfTool } from "../tools/server-method.ts";
import { capabilitiesFor } from "./input/elicitation.ts";
import { answersFrom, inputRequiredByUrls, inputRequiredFrom, isInputRequired, urlsIn } from "./input/required.ts";
import { refusedSampling } from "./input/sampling.ts";

/** What is called, and on whose behalf. */
export interface Call {
  callId: string;
  sessionId: string;
  principal: string;
  tool: string;
  argumentsJson: string;
  /** What can be asked on the call's behalf. */
  accepted: readonly InputKind[];
  /** Answers to what it asked for. */
  responses?: InputResponses | undefined;
}

export interface Execution extends Call {
  server: McpServer;
  time: MovingDeadline;
  tell: (event: CallEvent) => void;
  /** Aborts when nobody waits for the call any more. */
  abandoned: AbortSignal;
  redact: (text: string) => string;
  keeper: Pick<LinkKeeper, "whenReady" | "readTools" | "leave">;
}

/**
 * Executes a call once. Only what the server is known not to have started is sent again: a call that found its session gone.
 * Aborting tells the server that it is canceled.
 */
export async function execute(execution: Execution): Promise<Executed> {
  const { server, tool, time, abandoned } = execution;
  const parsed = parseToolArguments(execution.argumentsJson);
  const name = nameOf(execution);
  if (methodOfTool(tool) === undefined && !isOffered(tool, server.allowedTools))
    refuse("permission_denied", `${name} is not among the server's allowed tools`, { reason: "TOOL_NOT_ALLOWED" });
  if (time.timeoutMs <= 0)
    refuse("deadline_exceeded", `the time of ${name} was over before it started`, { reason: "CALL_NOT_STARTED" });
  using ending = openEnding(time.signal, abandoned);
  const { signal } = ending;
  for (let isFirst = true; ; isFirst = false) {
    const notStarted = (error: unknown) => refuseNotStarted(execution, error);
    const ready = await execution.keeper.whenReady(signal).catch(notStarted);
    const listed = await listedTool(execution, ready, signal).catch(notStarted);
    const answered = await callOnce(execution, { ready, listed, parsed, signal });
    if (answered.case !== "failed") return answered;
    const { kind } = answered.outcome;
    if (kind === "lost" || kind === "unreachable") execution.keeper.leave(ready, answered.outcome);
    if (kind === "lost" && isFirst) continue;
    throw failureFromOutcome(execution, answered.outcome);
  }
}

/** The result of a task is read after its end, at the latest with the time of the call. */
const KEPT_LONGER_MS = 60_000;

/** What JSON-RPC says of parameters that are not taken, and MCP up to 2025-11-25 of a resource that there is not. */
const REFUSES_PARAMS = new Set([-32_602, -32_002]);

async function callOnce(
  execution: Execution,
  call: { ready: ReadyPhase; listed: Tool; parsed: Record<string, unknown>; signal: AbortSignal },
): Promise<Executed | { case: "failed"; outcome: Outcome }> {
  const { link } = call.ready;
  const { responses, server } = execution;
  const accepted = execution.accepted.filter((kind) => kind !== InputKind.SAMPLING || server.sampling);
  const refused = responses && refusedSampling(responses);
  if (refused !== undefined) return errorOf(refused);
  const asking = {
    identity: [execution.callId, execution.sessionId, execution.principal],
    accepted,
    roots: rootsOf(execution.server),
  };
  const answers = responses && answersFrom(responses, asking.identity);
  const onProgress = (progress: Progress) => execution.tell({ case: "progress", value: progressFrom(progress) });
  try {
    const { callId: idempotencyKey, time } = execution;
    const keepMs = Math.max(0, time.latestMs - Date.now()) + KEPT_LONGER_MS;
    const called = await link.call(
      {
        ...{ tool: call.listed, idempotencyKey, keepMs, arguments: call.parsed, onProgress, answers },
        capabilities: capabilitiesFor(accepted),
      },
      call.signal,
    );
    if (isInputRequired(called)) return inputFrom(() => inputRequiredFrom(called, asking));
    const task = taskIn(called);
    const followed = task === undefined ? { answer: called } : await follow(execution, call, task);
    if ("outcome" in followed) return failed(followed.outcome);
    const { answer } = followed;
    return { case: "result", value: resultFromAnswer(heldIn(answer, "answer") ?? answer, execution.redact) };
  } catch (error) {
    const urls = urlsIn(error);
    if (urls !== undefined) return inputFrom(() => inputRequiredByUrls(urls, asking));
    if (call.signal.aborted) return failed({ kind: "unknown", text: messageFromUnknown(call.signal.reason) });
    const needed = loginNeededIn(error);
    if (needed) {
      execution.keeper.leave(call.ready, { kind: "login", text: needed.message });
      throw needed;
    }
    const { kind, text } = link.outcomeOf(error);
    const outcome: Outcome = { kind, text: execution.redact(text) };
    if (outcome.kind === "answered") return errorOf(outcome.text, refusalOfParams(execution.tool, error));
    if (outcome.kind === "unknown" && isConnectionEnd(error))
      return failed({ kind: "unknown", text: execution.redact(await link.ended) });
    return failed(outcome);
  }
}

/** A server that asks for what it was not offered has an error for its call. */
function inputFrom(read: () => InputRequired): Executed {
  try {
    return { case: "inputRequired", value: read() };
  } catch (error) {
    return errorOf(messageFromUnknown(error));
  }
}

/** What is asked of a server beside calls has no result of its own to say so. */
function refusalOfParams(tool: string, error: unknown): "INVALID_REQUEST" | undefined {
  const isRefused = error instanceof ProtocolError && REFUSES_PARAMS.has(error.code);
  return isRefused && methodOfTool(tool) !== undefined ? "INVALID_REQUEST" : undefined;
}

function errorOf(text: string, reason?: "INVALID_REQUEST"): Executed {
  return { case: "result", value: providedResult(errorResult(text, reason)) };
}

function follow(execution: Execution, call: { ready: ReadyPhase; signal: AbortSignal }, task: Task) {
  const { keeper, server } = execution;
  const onStatus = (message: string, progress: number) =>
    execution.tell({ case: "progress", value: progressFrom({ progress, message: execution.redact(message) }) });
  return followTask({ ...call, keeper, task, outlivesLink: server.transport.case !== "stdio", onStatus });
}

function failed(outcome: Outcome) {
  return { case: "failed", outcome } as const;
}

function isConnectionEnd(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "CONNECTION_CLOSED";
}

/** A tool that is not in the list may have come a moment ago. */
async function listedTool(execution: Execution, ready: ReadyPhase, signal: AbortSignal): Promise<Tool> {
  if (methodOfTool(execution.tool) !== undefined) return create(ToolSchema, { name: execution.tool });
  const listed = ready.tools.get(execution.tool);
  if (listed) return listed;
  await unlessAborted(execution.keeper.readTools(), signal).catch(() => signal.throwIfAborted()); // else the list that is known decides
  return (
    ready.tools.get(execution.tool) ??
    refuse("not_found", `${nameOf(execution)} does not exist: the server offers no such tool`, {
      reason: "TOOL_NOT_FOUND",
    })
  );
}

function failureFromOutcome(execution: Execution, outcome: Outcome): Failure {
  const name = nameOf(execution);
  const { time, abandoned } = execution;
  const metadata = { server: execution.server.name, tool: execution.tool };
  const unknown = { reason: "OUTCOME_UNKNOWN", metadata } as const;
  if (abandoned.aborted) return new Failure("canceled", `${name} was canceled`, unknown);
  if (time.signal.aborted) {
    const text = `${name} did not answer in time; it was told to stop`;
    return new Failure("deadline_exceeded", text, unknown);
  }
  if (outcome.kind === "unknown")
    return new Failure("unavailable", `the outcome of ${name} is unknown: ${outcome.text}`, unknown);
  return new Failure("unavailable", `${name} was not started: ${outcome.text}`, {
    reason: "MCP_SERVER_UNAVAILABLE",
    metadata,
  });
}

/** The deadline came while the server, or its list, was not there. */
function refuseNotStarted(execution: Execution, error: unknown): never {
  if (!execution.time.signal.aborted) throw error;
  return refuse("deadline_exceeded", `${nameOf(execution)} was not started: its server was not ready in time`, {
    reason: "CALL_NOT_STARTED",
  });
}

function progressFrom({ progress, total = 0, message = "" }: Progress) {
  return create(ToolProgressSchema, { progress, total, message });
}

function nameOf({ server, tool }: Execution): string {
  return `@${server.name}/${tool}`;
}
