import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createAddressGuard, type ResolveHost } from "#runtime/http/address-guard.ts";
import { openHttpExecution } from "../calls/execute/http/http-execution.ts";
import { entryOf, tool } from "./fakes/tools.ts";

export interface TestCall {
  method?: string;
  headers?: Record<string, string>;
  args?: Record<string, unknown>;
  argumentsJson?: string;
  timeoutMs?: number;
  effect?: Effect;
  signal?: AbortSignal;
}

/** HTTP execution by itself, with a secret KEY; `call` gives the answer's JSON text. */
export function openTestHttpExecution(options: {
  allow: string[];
  resolveWith?: ResolveHost;
  maxResponseBytes?: number;
}) {
  const { allow, resolveWith, maxResponseBytes = 50_000 } = options;
  const guard = createAddressGuard(allow, { ...(resolveWith && { resolveWith }) });
  const http = openHttpExecution({ guard, secrets: new Map([["KEY", "s3cret"]]), maxResponseBytes });
  return {
    async call(url: string, call: TestCall = {}): Promise<string> {
      const { method = "", headers = {}, args = {}, timeoutMs = 5_000, effect = Effect.PURE } = call;
      const execution = { url, method, headers };
      const entry = entryOf(tool("web", { executionType: ExecutionType.GATEWAY, execution, effect }));
      const json = call.argumentsJson ?? JSON.stringify(args);
      const deadline = { at: Date.now() + timeoutMs, timeoutMs };
      const signal = call.signal ?? new AbortController().signal;
      return (await http.execute(entry, { json, idempotencyKey: "call-1" }, deadline, signal)).outputJson;
    },
    [Symbol.asyncDispose]: () => http[Symbol.asyncDispose](),
  };
}
