import { ProtocolError } from "@modelcontextprotocol/server";
import { fieldsOf, isObject } from "#runtime/schema/json-object.ts";
import { delay } from "#runtime/time/delay.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { JSON_RPC } from "../../http/refusals.ts";
import { POLL_MS } from "../../tasks/task.ts";

/*
 * `notifications/tasks` of the extension of tasks, on the stream of a request that listens (2026-07-28). The SDK's handler serves that
 * stream, and knows nothing of tasks: its frames are passed on, and these stand between them.
 *
 * LISTEN-1  The first frame says which tasks are told of: those that there are, and that are the principal's.
 * LISTEN-2  Each is told as `tasks/get` answers: once at first, and whenever it is another answer. The last one is that of its end.
 * LISTEN-3  To read them takes a tenth of a stream's time at most: many streams of many tasks cost others little (SEC-5).
 */

const MOST_TASKS = 100;
/** A router that is away, or a client that reads slowly, may take long. */
const MOST_REST_MS = 30_000;
const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";

/** A task as `tasks/get` answers it; undefined for one that there is not, or that is somebody else's. */
export type ReadTask = (taskId: string) => Promise<DetailedTask | undefined>;

interface DetailedTask extends Record<string, unknown> {
  readonly taskId: string;
  readonly status: string;
}

interface Frame {
  readonly method?: string;
  readonly params?: { readonly notifications?: object };
}

/** The tasks that a request is told of (LISTEN-1). */
export async function listenedTasks(notifications: unknown, read: ReadTask): Promise<string[]> {
  const asked = tasksIn(notifications);
  const standing = await Promise.all(asked.map(read));
  return asked.filter((_, index) => standing[index] !== undefined);
}

function tasksIn(notifications: unknown): string[] {
  const asked = fieldsOf(notifications).taskIds;
  const ids = Array.isArray(asked) ? asked.filter((id) => typeof id === "string") : [];
  if (ids.length > MOST_TASKS)
    throw new ProtocolError(JSON_RPC.invalidParams, `a stream tells of ${MOST_TASKS} tasks at most`);
  return [...new Set(ids)];
}

/** The SDK ends the stream of a request that it is to tell nothing: so it is asked for something, which the client is not told. */
export function listeningAnyway(body: unknown) {
  const { id: subscriptionId, params: given } = fieldsOf(body);
  const params = fieldsOf(given);
  const notifications = fieldsOf(params.notifications);
  const hidesTools = notifications.toolsListChanged !== true;
  const own = { ...params, notifications: { ...notifications, toolsListChanged: true } };
  return { body: isObject(body) ? { ...body, params: own } : body, subscriptionId, hidesTools };
}

export interface ListenedTasks {
  readonly subscriptionId?: unknown;
  readonly taskIds: readonly string[];
  readonly read: ReadTask;
  readonly hidesTools: boolean;
  /** One of them aborts when the client has left, or this process stops. */
  readonly signals: readonly AbortSignal[];
}

/** The stream with what it tells of tasks. */
export function withTaskUpdates(response: Response, listened: ListenedTasks): Response {
  const { read, taskIds: told, signals, subscriptionId, hidesTools } = listened;
  const merged = new TextEncoderStream();
  const writer = merged.writable.getWriter();
  const notify = (task: DetailedTask) => {
    const params = { ...task, _meta: { [SUBSCRIPTION_ID]: subscriptionId } };
    return writer.write(frameOf({ method: "notifications/tasks", params }));
  };
  const pass = async () => {
    using ending = openEnding(...signals);
    let isFirst = true;
    try {
      for await (const frame of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const kept = keptFrame(frame, { told, hidesTools });
        if (kept !== undefined) await writer.write(kept);
        if (isFirst) void followTasks(told, { read, notify, signal: ending.signal }).catch(() => {}); // the client has left
        isFirst = false;
      }
    } finally {
      ending.end();
    }
    await writer.close();
  };
  void pass().catch(() => {}); // the client has left
  return new Response(merged.readable, { status: response.status, headers: response.headers });
}

interface Following {
  readonly read: ReadTask;
  readonly notify: (task: DetailedTask) => Promise<void>;
  readonly signal: AbortSignal;
}

/** LISTEN-2, LISTEN-3 */
async function followTasks(taskIds: readonly string[], { read, notify, signal }: Following): Promise<void> {
  const known = new Map(taskIds.map((taskId) => [taskId, ""]));
  while (known.size > 0 && !signal.aborted) {
    const beganAt = performance.now();
    for (const [taskId, before] of known) {
      const task = await read(taskId).catch(() => null); // asked again
      if (task === null) continue;
      const text = JSON.stringify(task);
      if (task !== undefined && text !== before) await notify(task);
      known.set(taskId, text);
      if (task === undefined || isEnd(task)) known.delete(taskId);
    }
    const tookMs = performance.now() - beganAt;
    await delay(Math.min(Math.max(POLL_MS, 9 * tookMs), MOST_REST_MS), signal).catch(() => {}); // the loop's condition sees it
  }
}

function isEnd({ status }: DetailedTask): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** The frame as the client is to have it; undefined for one that it did not ask for. */
function keptFrame(text: string, { told, hidesTools }: { told: readonly string[]; hidesTools: boolean }) {
  const [, data] = /^event: message\ndata: (.*)\n\n$/.exec(text) ?? [];
  if (data === undefined) return text;
  const { method, params, ...more }: Frame = JSON.parse(data);
  if (hidesTools && method === "notifications/tools/list_changed") return undefined;
  if (method !== "notifications/subscriptions/acknowledged") return text;
  const { toolsListChanged, ...others }: Record<string, unknown> = { ...params?.notifications };
  const tools = hidesTools ? {} : { toolsListChanged };
  const notifications = { ...others, ...tools, taskIds: told };
  return frameOf({ ...more, method, params: { ...params, notifications } });
}

function frameOf(message: object): string {
  return `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;
}
