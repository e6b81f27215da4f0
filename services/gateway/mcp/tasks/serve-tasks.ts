/*
 * Durable calls as tasks of 2025-11-25: a client that asks for one polls it, or waits for its result, at any gateway.
 *
 * TASK-1  A task is a recorded call, and its id is the call's. So it is there before its client hears of it, outlives the gateway, the
 *         router and the session, and is made once however often its request is sent (mcp-2).
 * TASK-2  Only a tool whose every call is recorded can be called so.
 * TASK-3  How a task stands, and what came of it, is what the record says. A gateway that is asked about one that is under way also waits
 *         for the call, since a call whose router is lost goes on, or is told as unknown, where somebody asks for it.
 * TASK-4  It belongs to the principal. To everybody else there is none.
 */

import { create as message } from "@bufbuild/protobuf";
import {
  type CallToolResult,
  type CreateTaskResult,
  ProtocolError,
  RELATED_TASK_META_KEY,
  type Server,
  type ServerContext,
  type Task,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { type ToolCall, ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { CallToolResultSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { until } from "#runtime/time/until.ts";
import { type AgentServerOptions, calledBy } from "../agent/agent-server.ts";
import { resultFrom } from "../agent/call-result.ts";
import { isRecorded, readTools, scopeOfSession } from "../agent/tool-list.ts";
import { type CalledTool, type CallInSession, follow } from "../calls/call.ts";
import type { Asking } from "../calls/questions.ts";
import { JSON_RPC } from "../http/refusals.ts";
import type { HeldCalls } from "./held-calls.ts";
import { createRecordedTasks } from "./recorded-tasks.ts";
import { errorTextOf, isOver, POLL_MS, statusOf, taskFrom } from "./task.ts";

export interface TasksOptions extends Omit<AgentServerOptions, "asking"> {
  readonly principal: string;
  readonly held: HeldCalls;
  readonly asking: Asking;
  /** Calls a tool in any session of the principal. */
  readonly callIn: (sessionId: string) => CallInSession;
  /** Aborts when the client has left. */
  readonly left: AbortSignal;
  /** Aborts when this process stops. */
  readonly stopping: AbortSignal;
}

/** Under this name the SDK is given calls that ask for a task: of `tools/call` it takes nothing but results of tools. */
export const CREATE_TASK = "toolbus/tasks/create";

const called = z.looseObject({ name: z.string(), arguments: z.record(z.string(), z.unknown()).optional() });
const named = z.looseObject({ taskId: z.string() });
const listed = z.looseObject({ cursor: z.string().optional() });

/** Adds the methods of tasks to an agent's server. */
export function serveTasks(server: Server, options: TasksOptions): void {
  const { answering, asking, held, calls, left, stopping } = options;
  const tasks = createRecordedTasks({ ...options, answers: asking.answers });
  const handle = <P extends z.ZodType, R>(
    method: string,
    params: P,
    work: (given: z.output<P>, context: ServerContext) => Promise<R>,
  ) =>
    server.setRequestHandler(method, { params }, (given, context) =>
      answering(async () => (await work(given as z.output<P>, context)) as Record<string, unknown>),
    );

  function wait(callTool: CallInSession, call: CalledTool) {
    const nobody = { signal: new AbortController().signal, tell: async () => {}, ask: async () => undefined };
    return held.hold(call.callId, () => follow({ ...options, callTool, answers: asking.answers }, call, nobody));
  }

  /** TASK-3. Resolves when the waiting has ended, however. */
  async function keepGoing({ callId, sessionId, state, tool: name, argumentsJson }: ToolCall): Promise<void> {
    if (state !== ToolCallState.STARTED && state !== ToolCallState.WAITING) return;
    if (isDigest(argumentsJson)) return; // whoever goes on with it would hand them to its tool
    await wait(options.callIn(sessionId), { callId, name, argumentsJson }).catch(() => {}); // it is in flight under another of its names, or refused by now
  }

  async function create(given: z.output<typeof called>, context: ServerContext): Promise<CreateTaskResult> {
    const asked = { id: context.mcpReq.id, name: given.name, arguments: given.arguments ?? {} };
    await requireRecorded(options, given.name);
    const callId = options.callIdOf(asked);
    const ended = wait(options.callTool, { ...calledBy(options, asked), callId });
    const answered = ended.then((outcome) => (outcome.kind === "answer" ? outcome.answer : undefined));
    for (let waitMs = 5; ; waitMs = Math.min(waitMs * 2, 250)) {
      const answer = await Promise.race([answered, delay(waitMs, left).then(() => undefined)]);
      const call = await tasks.find(callId);
      if (call) return { task: { ...taskFrom(call), status: "working" } };
      if (answer) throw new ProtocolError(JSON_RPC.invalidParams, errorTextOf(answer.outputJson));
    }
  }

  async function get(taskId: string): Promise<Task> {
    const call = await tasks.require(taskId);
    void keepGoing(call);
    return taskFrom(call, (await tasks.questions(call)).length > 0);
  }

  /** Waits for the end. Meanwhile the client's person is asked what the task waits for. */
  async function result(taskId: string, context: ServerContext): Promise<CallToolResult> {
    using ending = openEnding(context.mcpReq.signal, left, stopping);
    let ended = endOf(await tasks.require(taskId));
    for (;;) {
      const isWaitedFor = !ended.aborted;
      const call = await tasks.require(taskId);
      if (isOver(call)) return resultOf(call);
      await asking.ask(await tasks.questions(call), { callId: taskId, context, isTask: true });
      using next = openEnding(ending.signal, isWaitedFor ? ended : undefined);
      await delay(POLL_MS, next.signal).catch(() => ending.signal.throwIfAborted());
      if (!isWaitedFor) ended = endOf(call);
    }
  }

  /** Aborts when the waiting for the call has ended: then its record has its end, as a rule. */
  function endOf(call: ToolCall): AbortSignal {
    const ended = new AbortController();
    void keepGoing(call).then(() => ended.abort());
    return ended.signal;
  }

  async function resultOf(call: ToolCall): Promise<CallToolResult> {
    const { $typeName, ...recorded } =
      call.result ?? refuse("internal", "the call ended without a result", { reason: "INTERNAL" });
    const hasSchema = async () => call.outputSchemaJson !== "";
    const told = await resultFrom(message(CallToolResultSchema, recorded), {
      ...options,
      callId: call.callId,
      hasSchema,
    });
    return { ...told, _meta: { ...told._meta, [RELATED_TASK_META_KEY]: { taskId: call.callId } } };
  }

  async function cancel(taskId: string): Promise<Task> {
    if (isOver(await tasks.require(taskId))) refuseEnded(taskId);
    await calls.cancelToolCall({ callId: taskId, reason: "canceled by the MCP client" }, options.options);
    const ended = await until(() => tasks.require(taskId).then((call) => isOver(call) && call), CANCELING).catch(() =>
      refuse("deadline_exceeded", `task ${taskId} is canceled, and has not ended yet`, { reason: "DEADLINE_EXCEEDED" }),
    );
    return statusOf(ended) === "cancelled" ? taskFrom(ended) : refuseEnded(taskId);
  }

  handle(CREATE_TASK, called, create);
  handle("tasks/get", named, ({ taskId }) => get(taskId));
  handle("tasks/result", named, ({ taskId }, context) => result(taskId, context));
  handle("tasks/cancel", named, ({ taskId }) => cancel(taskId));
  handle("tasks/list", listed, ({ cursor = "" }) => tasks.page(cursor));
}

/** What is recorded of arguments that are too large for a record. */
function isDigest(argumentsJson: string): boolean {
  return argumentsJson.startsWith('{"truncated":true,"bytes":');
}

const CANCELING = { timeoutMs: 10_000, intervalMs: 50, what: "the end of a canceled task" };

function refuseEnded(taskId: string): never {
  throw new ProtocolError(JSON_RPC.invalidParams, `task ${taskId} has ended`);
}

/** TASK-2. What there is no tool for, the router refuses in words. */
async function requireRecorded({ tools, sessionId, options }: TasksOptions, name: string): Promise<void> {
  const list = await readTools(tools, scopeOfSession(await sessionId()), options);
  const found = list.tools.find(
    (one) => one.modelName === name || one.reference === name || one.aliases.includes(name),
  );
  if (found === undefined || isRecorded(found.tool)) return;
  throw new ProtocolError(JSON_RPC.methodNotFound, `calls of ${name} are not recorded: call it without a task`);
}
