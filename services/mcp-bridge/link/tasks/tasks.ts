/*
 * Calls that a server answers with a task: of 2025-11-25, where the client asks for one, and of the extension
 * `io.modelcontextprotocol/tasks` of 2026-07-28, where the server decides.
 */
import type { CallToolResult, Client, RequestOptions } from "@modelcontextprotocol/client";
import { z } from "zod";
import { Failure } from "#runtime/failure/failure.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { heldIn, holding } from "../outcome/shown-answers.ts";

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

const DEFAULT_POLL_MS = 1_000;
const SHORTEST_POLL_MS = 50;
const LONGEST_POLL_MS = 60_000;

const taskSchema = z.looseObject({
  taskId: z.string().min(1).max(4_096),
  status: z.string(),
  statusMessage: z.string().nullish(),
  pollInterval: z.number().nullish(),
  pollIntervalMs: z.number().nullish(),
});

/** A task as the server told of it last. */
export type Task = z.infer<typeof taskSchema>;

export const anyObject = z.looseObject({});

/** What a link can do with the tasks of its server. */
export function tasksOf(client: Client, optionsWith: (signal: AbortSignal) => RequestOptions) {
  const isModern = client.getProtocolEra() === "modern";
  const ask = (method: string, taskId: string, signal: AbortSignal) =>
    client.request({ method, params: { taskId } }, anyObject, optionsWith(signal));
  return {
    /** How it stands. Rejects with whatever the SDK says. */
    get: async (taskId: string, signal: AbortSignal) => taskSchema.parse(await ask("tasks/get", taskId, signal)),
    /** The result of one that has ended, or that waits for answers to what its server asks meanwhile. */
    async result(task: Task, signal: AbortSignal): Promise<CallToolResult> {
      if (task.status === "cancelled") return errorAnswer("the server canceled it");
      if (!isModern) return resultIn(await ask("tasks/result", task.taskId, signal));
      if (task.status === "completed") return resultIn(task.result);
      const error = isObject(task.error) ? String(task.error.message) : (task.statusMessage ?? "");
      if (task.status === "failed") return errorAnswer(error || "it failed without saying why");
      await ask("tasks/cancel", task.taskId, signal);
      return errorAnswer("its task asks for what this client does not offer");
    },
    async cancel(taskId: string, signal: AbortSignal): Promise<void> {
      await ask("tasks/cancel", taskId, signal);
    },
  };
}

export function isUnderWay({ status }: Task): boolean {
  return status === "working" || status === "submitted";
}

export function pollMsOf({ pollInterval, pollIntervalMs }: Task): number {
  const wanted = pollIntervalMs ?? pollInterval ?? DEFAULT_POLL_MS;
  return Math.min(Math.max(wanted, SHORTEST_POLL_MS), LONGEST_POLL_MS);
}

/** Calls a tool that wants to be called as a task (2025-11-25); a server may give its result at once. */
export async function callAsTask(
  client: Client,
  params: Record<string, unknown>,
  options: RequestOptions,
): Promise<CallToolResult> {
  const answer = await client.request({ method: "tools/call", params }, anyObject, options);
  return isObject(answer.task) ? holding("task", answer.task) : resultIn(answer);
}

/** By 2025-11-25 a tool says in the list how it is called. */
export function wantsTask(client: Client, listed: unknown): boolean {
  const isOffered = client.getServerCapabilities()?.tasks?.requests?.tools?.call !== undefined;
  const execution = isObject(listed) && isObject(listed.execution) ? listed.execution : {};
  return isOffered && execution.taskSupport === "required";
}

/** The task that stands for a result. */
export function taskIn(result: Pick<CallToolResult, "_meta">): Task | undefined {
  const told = heldIn(result, "task");
  return told === undefined ? undefined : taskSchema.parse(told);
}

/** Shown whole before, or a part of what was shown. */
function resultIn(value: unknown): CallToolResult {
  if (!isObject(value))
    throw new Failure("unavailable", "the result of its task is none of a tool", { reason: "OUTCOME_UNKNOWN" });
  return heldIn(value, "answer") === undefined ? holding("answer", value) : (value as CallToolResult);
}

export function errorAnswer(text: string): CallToolResult {
  return { isError: true, content: [{ type: "text", text }] };
}
