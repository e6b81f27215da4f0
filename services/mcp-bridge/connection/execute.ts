import { create } from "@bufbuild/protobuf";
import type { Progress } from "@modelcontextprotocol/client";
import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { type Tool, ToolProgressSchema, type ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { Failure, messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { startTimer } from "#runtime/time/timer.ts";
import type { LinkKeeper } from "../link/link-keeper.ts";
import type { Outcome } from "../link/outcome.ts";
import type { ReadyPhase } from "../link/phase.ts";
import { isOffered } from "../tools/is-offered.ts";
import { resultFromAnswer } from "../tools/result.ts";
import type { CallEvent } from "./calls.ts";

export interface Execution {
  server: McpServer;
  tool: string;
  callId: string;
  argumentsJson: string;
  deadlineMs: number;
  latestMs?: number | undefined;
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
export async function execute(execution: Execution): Promise<ToolResult> {
  const { server, tool, abandoned } = execution;
  const parsed = parseArguments(execution.argumentsJson);
  if (!isOffered(tool, server.allowedTools)) {
    refuse("permission_denied", `${nameOf(execution)} is not among the server's allowed tools`, {
      reason: "TOOL_NOT_ALLOWED",
    });
  }
  const timeLeftMs = execution.deadlineMs - Date.now();
  if (timeLeftMs <= 0)
    refuse("deadline_exceeded", `the time of ${nameOf(execution)} was over before it started`, {
      reason: "CALL_NOT_STARTED",
    });
  const over = new AbortController();
  const startUntil = (atMs: number) => startTimer(Math.max(0, atMs - Date.now()), () => over.abort());
  let stop = startUntil(execution.deadlineMs);
  const { latestMs } = execution;
  const tell = (event: CallEvent) => {
    if (event.case === "progress" && latestMs !== undefined) {
      stop();
      stop = startUntil(Math.min(latestMs, Date.now() + timeLeftMs));
    }
    execution.tell(event);
  };
  try {
    const limits = { deadline: over.signal, abandoned, timeoutMs: timeLeftMs };
    return await executeWithin({ ...execution, tell }, parsed, limits);
  } finally {
    stop();
  }
}

interface Limits {
  deadline: AbortSignal;
  abandoned: AbortSignal;
  timeoutMs: number;
}

async function executeWithin(
  execution: Execution,
  parsed: Record<string, unknown>,
  limits: Limits,
): Promise<ToolResult> {
  const { deadline } = limits;
  using ending = openEnding(deadline, limits.abandoned);
  const { signal } = ending;
  for (let isFirst = true; ; isFirst = false) {
    const ready = await execution.keeper
      .whenReady(signal)
      .catch((error) => refuseNotStarted(execution, deadline, error));
    const listed = await listedTool(execution, ready);
    const answered = await callOnce(execution, { ready, listed, parsed, signal });
    if ("result" in answered) return answered.result;
    const { kind } = answered.outcome;
    if (kind === "lost" || kind === "unreachable") execution.keeper.leave(ready, answered.outcome);
    if (kind === "lost" && isFirst) continue;
    throw failureFromOutcome(execution, answered.outcome, limits);
  }
}

async function callOnce(
  execution: Execution,
  call: { ready: ReadyPhase; listed: Tool; parsed: Record<string, unknown>; signal: AbortSignal },
): Promise<{ result: ToolResult } | { outcome: Outcome }> {
  const { link } = call.ready;
  const onProgress = (progress: Progress) => execution.tell({ case: "progress", value: progressFrom(progress) });
  try {
    const { callId: idempotencyKey } = execution;
    const answer = await link.call(
      { tool: call.listed, idempotencyKey, arguments: call.parsed, onProgress },
      call.signal,
    );
    const result = resultFromAnswer(answer);
    return { result: result.isError ? { ...result, outputJson: execution.redact(result.outputJson) } : result };
  } catch (error) {
    if (call.signal.aborted) return { outcome: { kind: "unknown", text: messageFromUnknown(call.signal.reason) } };
    const { kind, text } = link.outcomeOf(error);
    const outcome: Outcome = { kind, text: execution.redact(text) };
    if (outcome.kind === "answered") return { result: errorResult(outcome.text) };
    if (outcome.kind === "unknown" && isConnectionEnd(error))
      return { outcome: { kind: "unknown", text: execution.redact(await link.ended) } };
    return { outcome };
  }
}

function isConnectionEnd(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "CONNECTION_CLOSED";
}

/** A tool that is not in the list may have come a moment ago. */
async function listedTool(execution: Execution, ready: ReadyPhase): Promise<Tool> {
  const listed = ready.tools.get(execution.tool);
  if (listed) return listed;
  await execution.keeper.readTools().catch(() => {}); // then the list that is known decides
  return (
    ready.tools.get(execution.tool) ??
    refuse("not_found", `${nameOf(execution)} does not exist: the server offers no such tool`, {
      reason: "TOOL_NOT_FOUND",
    })
  );
}

function failureFromOutcome(execution: Execution, outcome: Outcome, limits: Limits): Failure {
  const name = nameOf(execution);
  const metadata = { server: execution.server.name, tool: execution.tool };
  const unknown = { reason: "OUTCOME_UNKNOWN", metadata } as const;
  if (limits.abandoned.aborted) return new Failure("canceled", `${name} was canceled`, unknown);
  if (limits.deadline.aborted) {
    return new Failure(
      "deadline_exceeded",
      `${name} did not answer within ${limits.timeoutMs} ms; it was told to stop`,
      unknown,
    );
  }
  if (outcome.kind === "unknown") {
    return new Failure("unavailable", `the outcome of ${name} is unknown: ${outcome.text}`, unknown);
  }
  return new Failure("unavailable", `${name} was not started: ${outcome.text}`, {
    reason: "MCP_SERVER_UNAVAILABLE",
    metadata,
  });
}

/** The deadline came while the server was not there. */
function refuseNotStarted(execution: Execution, deadline: AbortSignal, error: unknown): never {
  if (!deadline.aborted) throw error;
  return refuse("deadline_exceeded", `${nameOf(execution)} was not started: its server was not ready in time`, {
    reason: "CALL_NOT_STARTED",
  });
}

function parseArguments(argumentsJson: string): Record<string, unknown> {
  let parsed: unknown;
  try {
    parsed = argumentsJson === "" ? {} : JSON.parse(argumentsJson);
  } catch (error) {
    refuse("invalid_argument", `the arguments are no JSON: ${messageFromUnknown(error)}`, {
      reason: "INVALID_REQUEST",
      fieldViolations: [{ field: "arguments_json", message: "is no JSON text" }],
    });
  }
  if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as Record<string, unknown>;
  return refuse("invalid_argument", "the arguments are no JSON object", {
    reason: "INVALID_REQUEST",
    fieldViolations: [{ field: "arguments_json", message: "is no JSON object" }],
  });
}

function progressFrom({ progress, total = 0, message = "" }: Progress) {
  return create(ToolProgressSchema, { progress, total, message });
}

function nameOf({ server, tool }: Execution): string {
  return `@${server.name}/${tool}`;
}
