/*
 * Durable calls as tasks of the extension `io.modelcontextprotocol/tasks` of 2026-07-28. To a client that declares it, a call that takes longer than
 * a moment is answered by a task, which is the recorded call (TASK-1 … TASK-4 of serve-tasks.ts). What it asks of people stands in
 * `tasks/get`, each question under its own id, and is answered by `tasks/update`.
 */

import {
  CLIENT_CAPABILITIES_META_KEY,
  ProtocolError,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { fieldsOf, isObject } from "#runtime/schema/json-object.ts";
import { delay } from "#runtime/time/delay.ts";
import type { AskedCall } from "../agent/agent-server.ts";
import { answer, elicitationOf } from "../calls/questions.ts";
import { JSON_RPC } from "../http/refusals.ts";
import { isOver, statusOf, taskFrom } from "./task.ts";
import { createTaskCalls, type TasksOptions } from "./task-calls.ts";

const EXTENSION = { "io.modelcontextprotocol/tasks": {} };
export const EXTENSION_CAPABILITY = { extensions: EXTENSION };

/** A call that ends sooner is answered by its result. */
const MOMENT_MS = 1_000;

/** Whether a request of 2026-07-28 says that its client knows tasks. */
export function knowsTasks(meta: Record<string, unknown>): boolean {
  const { extensions } = fieldsOf(meta[CLIENT_CAPABILITIES_META_KEY]);
  return isObject(fieldsOf(extensions)["io.modelcontextprotocol/tasks"]);
}

/** Gives the result of a call, or its task; undefined for a tool whose calls are none. */
export function createTaskAnswer(options: TasksOptions) {
  const { calls, left } = options;
  const { begin, answerOf, isTaskTool } = createTaskCalls(options);

  async function answered(asked: AskedCall, callId: string) {
    const { call, ended } = await begin(asked, callId);
    if (call === undefined) return answerOf(await ended, { callId, outputSchemaJson: "" });
    const soon = await Promise.race([ended, delay(MOMENT_MS, left).then(() => undefined)]);
    if (soon) return answerOf(soon, call);
    return { content: [], resultType: "task", ...taskOf(call) }; // the SDK wants `content`
  }

  return async (asked: AskedCall) => {
    if (!(await isTaskTool(asked))) return undefined;
    const callId = options.callIdOf(asked);
    try {
      return await answered(asked, callId);
    } catch (error) {
      if (left.aborted) await calls.cancelToolCall({ callId, reason: "the MCP client left" }, options.options); // it has not been told of the task
      throw error;
    }
  };
}

/** Tasks with what came of them, or what they ask: for `tasks/get`, and for who listens. */
export function createDetailedTasks(options: TasksOptions) {
  const { tasks, keepGoing, resultOf } = createTaskCalls(options);

  async function detailed(call: ToolCall) {
    void keepGoing(call);
    const questions = await tasks.questions(call);
    const inputRequests = Object.fromEntries(
      questions.map((question) => [
        question.callId,
        { method: "elicitation/create", params: elicitationOf(question, options.asking.answers) },
      ]),
    );
    const isAsking = questions.length > 0;
    const task = taskOf(call, isAsking);
    const result = task.status === "completed" && (await resultOf(call));
    return { ...task, ...(isAsking && { inputRequests }), ...(result && { result }) };
  }

  return { tasks, detailed };
}

const named = z.looseObject({ taskId: z.string() });

/** Adds the methods of the extension to an agent's server. */
export function serveTaskExtension(server: Server, options: TasksOptions, isDeclared: boolean): void {
  const { calls } = options;
  const { tasks, detailed } = createDetailedTasks(options);
  const handle = (method: string, work: (call: ToolCall, context: ServerContext) => Promise<Record<string, unknown>>) =>
    server.setRequestHandler(method, { params: named }, async ({ taskId }, context) => {
      if (!isDeclared) refuseUndeclared();
      return work(await tasks.require(taskId), context);
    });

  handle("tasks/get", detailed);
  handle("tasks/update", async (call, { mcpReq }) => {
    const outstanding = await tasks.questions(call);
    const given = Object.entries(mcpReq.inputResponses ?? {});
    const brought = given.filter(([callId]) => outstanding.some((question) => question.callId === callId));
    await Promise.all(brought.map(([callId, result]) => answer(calls, { callId, result }, options.options)));
    return {};
  });
  handle("tasks/cancel", async ({ callId }) => {
    await calls.cancelToolCall({ callId, reason: "canceled by the MCP client" }, options.options);
    return {};
  });
}

/** A recorded call as the extension has it: a tool that failed has completed. */
function taskOf(call: ToolCall, isAsking = false) {
  const { ttl: ttlMs, pollInterval: pollIntervalMs, ...task } = taskFrom(call, isAsking);
  const status = isOver(call) && statusOf(call) === "failed" ? "completed" : task.status;
  return { ...task, status, ttlMs, pollIntervalMs };
}

export function refuseUndeclared(): never {
  const data = { requiredCapabilities: EXTENSION_CAPABILITY };
  throw new ProtocolError(JSON_RPC.missingCapability, "the client has not declared the extension of tasks", data);
}
