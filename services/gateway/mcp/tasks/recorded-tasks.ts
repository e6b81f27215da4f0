import type { CallOptions } from "@connectrpc/connect";
import { ProtocolError, type Task } from "@modelcontextprotocol/server";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import type { StoredCalls } from "../agent/stored-results.ts";
import { type Answers, allWaiting, elicitationOf, isAskedBy, waitingFor } from "../calls/questions.ts";
import { JSON_RPC } from "../http/refusals.ts";
import { isForgotten, isOver, taskFrom } from "./task.ts";

export interface RecordedTasksOptions {
  readonly calls: StoredCalls;
  readonly options: CallOptions;
  readonly principal: string;
  /** What the client that asks can ask its person. */
  readonly answers: Answers;
}

const PAGE = 100;
/** The same for one that there never was, one that is not kept any more, and somebody else's. */
const MISSING = new Set<string>(["not_found", "permission_denied", "invalid_argument"]);

/**
 * A principal's tasks: its recorded calls that were made outside of runs, in whichever of its sessions and however they were asked
 * for. Those that were asked for as tasks are listed. Nothing else is stored of them.
 */
export function createRecordedTasks({ calls, options, principal, answers }: RecordedTasksOptions) {
  const isTask = (call: ToolCall) =>
    call.tool !== "" && call.runId === "" && call.question === undefined && call.principal === principal;
  const isKept = (call: ToolCall) => isTask(call) && !isForgotten(call, Date.now());
  const canAsk = answers.forms || answers.urls;
  const isAnswerable = (question: ToolCall) => elicitationOf(question, answers) !== undefined;

  /** Whether its client wants it still or not. */
  async function findAny(taskId: string): Promise<ToolCall | undefined> {
    try {
      const { call } = await calls.getToolCall({ callId: taskId }, options);
      return call && isTask(call) ? call : undefined;
    } catch (error) {
      if (MISSING.has(failureFromConnectError(error).code)) return undefined;
      throw error;
    }
  }

  async function find(taskId: string): Promise<ToolCall | undefined> {
    const call = await findAny(taskId);
    return call && isKept(call) ? call : undefined;
  }

  /** What the task waits for and the client's person can answer. */
  async function questions(call: ToolCall): Promise<ToolCall[]> {
    if (!canAsk || isOver(call)) return [];
    return (await waitingFor(calls, call, options)).filter(isAnswerable);
  }

  async function page(cursor: string): Promise<{ tasks: Task[]; nextCursor?: string }> {
    const listed = await calls.listToolCalls({ onlyTasks: true, pageToken: cursor, pageSize: PAGE }, options);
    const found = listed.calls.filter(isKept);
    const isOpen = canAsk && found.some((call) => !isOver(call));
    const waiting = isOpen ? (await allWaiting(calls, "", options)).filter(isAnswerable) : []; // once, however many are open
    const isAsking = ({ callId }: ToolCall) => waiting.some((asked) => isAskedBy(asked, callId));
    const tasks = found.map((call) => taskFrom(call, isAsking(call)));
    const { nextPageToken } = listed;
    return { tasks, ...(nextPageToken !== "" && { nextCursor: nextPageToken }) };
  }

  async function require(taskId: string): Promise<ToolCall> {
    return (await find(taskId)) ?? refuseTask(taskId);
  }

  return { find, findAny, require, questions, page };
}

function refuseTask(taskId: string): never {
  const text = `there is no task ${JSON.stringify(taskId.slice(0, 128))}`;
  throw new ProtocolError(JSON_RPC.invalidParams, text, { code: "not_found", reason: "CALL_NOT_FOUND" });
}
