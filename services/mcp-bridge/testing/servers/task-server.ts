import { json } from "node:stream/consumers";
import { type HttpServer, listen } from "./http-server.ts";

interface Asked {
  id?: number | string;
  method: string;
  params?: { name?: string; taskId?: string; task?: { ttl?: number } };
}

/** What a server with one tool has seen, and how its one task stands. */
export interface TaskServer extends HttpServer {
  readonly asked: string[];
  /** Of the task that was asked for, in ms. */
  readonly ttl: number | undefined;
  task: Record<string, unknown>;
  /** The next requests of this method are answered with this status, so many of them. */
  fail(method: string, status: number, times: number): void;
}

/** A server over HTTP that answers each call with a task, without any SDK: by 2025-11-25, or by the extension of 2026-07-28. */
export async function openTaskServer(era: "legacy" | "modern"): Promise<TaskServer> {
  const isModern = era === "modern";
  const asked: string[] = [];
  const failing = new Map<string, { status: number; times: number }>();
  const state: { task: Record<string, unknown>; ttl: number | undefined } = { task: {}, ttl: undefined };
  const told = () => ({
    taskId: "t1",
    status: "working",
    createdAt: new Date().toISOString(),
    lastUpdatedAt: new Date().toISOString(),
    ...(isModern ? { ttlMs: null, pollIntervalMs: 60 } : { ttl: null, pollInterval: 60 }),
    ...state.task,
  });
  const capabilities = isModern
    ? { tools: {}, extensions: { "io.modelcontextprotocol/tasks": {} } }
    : { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } };
  const tools = [{ name: "research", inputSchema: { type: "object" }, execution: { taskSupport: "required" } }];
  const serverInfo = { name: "tasks", version: "1" };
  const answers: Record<string, (params: NonNullable<Asked["params"]>) => object> = {
    ...(isModern
      ? {
          "server/discover": () => ({
            supportedVersions: ["2026-07-28"],
            capabilities,
            serverInfo,
            ttlMs: 0,
            cacheScope: "private",
          }),
        }
      : { initialize: () => ({ protocolVersion: "2025-11-25", capabilities, serverInfo }) }),
    "tools/list": () => ({ tools, ttlMs: 0, cacheScope: "private" }),
    "tools/call": ({ task }) => {
      state.ttl = task?.ttl;
      return isModern ? { ...told(), resultType: "task" } : { task: told() };
    },
    "tasks/get": told,
    "tasks/result": () => (state.task.result as object) ?? {},
    "tasks/cancel": () => {
      state.task = { status: "cancelled" };
      return told();
    },
  };
  const server = await listen(async (request, response) => {
    if (request.method !== "POST") return response.writeHead(405).end();
    const { id, method, params = {} } = (await json(request)) as Asked;
    asked.push(method);
    const fault = failing.get(method);
    if (fault !== undefined && fault.times-- > 0) return response.writeHead(fault.status).end("no session");
    if (id === undefined) return response.writeHead(202).end();
    const answer = answers[method];
    const result = answer && { ...(isModern && { resultType: "complete" }), ...answer(params) };
    const error = { code: -32_601, message: `no ${method}` };
    response.writeHead(200, {
      "content-type": "application/json",
      ...(method === "initialize" && { "mcp-session-id": "s1" }),
    });
    return response.end(JSON.stringify({ jsonrpc: "2.0", id, ...(result ? { result } : { error }) }));
  });
  return {
    ...server,
    asked,
    get ttl() {
      return state.ttl;
    },
    get task() {
      return state.task;
    },
    set task(task) {
      state.task = task;
    },
    fail: (method, status, times) => void failing.set(method, { status, times }),
  };
}
