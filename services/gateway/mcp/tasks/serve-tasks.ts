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
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { errorTextOf } from "#runtime/results/error-result.ts";
import { delay } from "#runtime/time/delay.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { until } from "#runtime/time/until.ts";
import { notifier } from "../calls/notifications.ts";
import { JSON_RPC } from "../http/refusals.ts";
import { isOver, POLL_MS, statusOf, taskFrom } from "./task.ts";
import { createTaskCalls, readPatiently, type TasksOptions } from "./task-calls.ts";

/** Under this name the SDK is given calls that ask for a task: of `tools/call` it takes nothing but results of tools. */
export const CREATE_TASK = "toolbus/tasks/create";
export const TASKS_CAPABILITY = { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };

const called = z.looseObject({
  name: z.string(),
  arguments: z.record(z.string(), z.unknown()).optional(),
  task: z.looseObject({ ttl: z.number().min(0).nullish() }),
});
const named = z.looseObject({ taskId: z.string() });
const listed = z.looseObject({ cursor: z.string().optional() });

/** Adds the methods of tasks to an agent's server. */
export function serveTasks(server: Server, options: TasksOptions): void {
  const { asking, calls, held, left, stopping } = options;
  const { tasks, begin, keepGoing, resultOf, isTaskTool } = createTaskCalls(options);
  const handle = <P extends z.ZodType>(
    method: string,
    params: P,
    work: (given: z.output<P>, context: ServerContext) => Promise<object>,
  ) =>
    server.setRequestHandler(method, { params }, async (given, context) => ({
      ...(await work(given as z.output<P>, context)),
    }));

  async function create(given: z.output<typeof called>, context: ServerContext): Promise<CreateTaskResult> {
    const asked = { id: context.mcpReq.id, name: given.name, arguments: given.arguments ?? {} };
    if ((await isTaskTool(asked)) === false) refuseTool(given.name);
    const { call, ended } = await begin(asked, options.callIdOf(asked), given.task.ttl ?? undefined);
    if (call) return { task: { ...taskFrom(call), status: "working" } };
    throw new ProtocolError(JSON_RPC.invalidParams, errorTextOf((await ended).outputJson));
  }

  async function get(taskId: string): Promise<Task> {
    const call = await tasks.require(taskId);
    void keepGoing(call);
    return taskFrom(call, (await tasks.questions(call)).length > 0);
  }

  /** Waits for the end. Meanwhile it tells of progress and states, and the client's person is asked what the task waits for. */
  async function result(taskId: string, context: ServerContext): Promise<CallToolResult> {
    using ending = openEnding(context.mcpReq.signal, left, stopping);
    await tasks.require(taskId);
    using _ = held.listen(taskId, notifier(context.mcpReq, options.logs));
    let told = "";
    const notifyStatus = async (task: Task) => {
      const isTold = told === task.status;
      told = task.status;
      if (!isTold) await context.mcpReq.notify({ method: "notifications/tasks/status", params: { ...task } });
    };
    let ended = endOf(await tasks.require(taskId));
    for (;;) {
      const isWaitedFor = !ended.aborted;
      const { call, questions } = await readPatiently(async () => {
        const call = await tasks.require(taskId);
        return { call, questions: await tasks.questions(call) };
      }, ending.signal);
      await notifyStatus(taskFrom(call, questions.length > 0));
      if (isOver(call)) {
        const answer = await resultOf(call);
        return { ...answer, _meta: { ...answer._meta, [RELATED_TASK_META_KEY]: { taskId } } };
      }
      await asking.ask(questions, { callId: taskId, context, isTask: true });
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

const CANCELING = { timeoutMs: 10_000, intervalMs: 50, what: "the end of a canceled task" };

function refuseEnded(taskId: string): never {
  throw new ProtocolError(JSON_RPC.invalidParams, `task ${taskId} has ended`);
}

function refuseTool(name: string): never {
  throw new ProtocolError(JSON_RPC.methodNotFound, `calls of ${name} are not recorded: call it without a task`);
}
