import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type CallToolRequest,
  type CallToolResponse,
  CallToolResponseSchema,
} from "#gen/toolbus/tool/v1/provider_pb.ts";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import type { Builtins } from "./builtins/builtins.ts";
import type { LogHub } from "./logs/log-hub.ts";
import type { LogLine, WrittenLine } from "./logs/log-line.ts";
import type { Pool } from "./pool/pool.ts";
import type { Secrets } from "./secrets.ts";
import { parseSourceConfig } from "./source-config.ts";
import type { Answer, CallListener } from "./worker/worker.ts";

export interface ExecutionContext {
  traceId: string;
  /** Told of progress and logs. */
  tell: (event: CallToolResponse) => void;
  signal: AbortSignal;
}

/** Carries a call out. Rejects with a Failure where nothing was started, or the outcome is unknown. */
export type Execute = (request: CallToolRequest, context: ExecutionContext) => Promise<Answer>;

export interface ExecutionParts {
  pool: Pool;
  builtins: Builtins;
  secrets: Secrets;
  logs: LogHub;
}

/** Who carries a call out: with a source a function of that file, without one the built-in that its policy is for. */
export function createExecution({ pool, builtins, secrets, logs }: ExecutionParts): Execute {
  return async (request, { traceId, tell, signal }) => {
    const argumentsJson = checkedArguments(request.argumentsJson);
    const timeoutMs = request.deadline ? Math.max(0, timestampMs(request.deadline) - Date.now()) : undefined;
    if (!request.source) {
      return builtins.call({ tool: request.tool, policy: request.builtinPolicy, argumentsJson, timeoutMs, signal });
    }
    const { source, file, secrets: names, config } = parseSourceConfig(request.source.name, request.source.config);
    const labels = { source, function: request.tool, callId: request.callId, traceId };
    return pool.call({
      source,
      file,
      function: request.tool,
      argumentsJson,
      configJson: JSON.stringify({ ...config, ...request.config }),
      secretsJson: secrets.jsonOf(source, names),
      idempotencyKey: request.callId,
      timeoutMs,
      signal,
      listener: createListener(tell, logs, labels),
    });
  };
}

type Labels = Pick<LogLine, "source" | "function" | "callId" | "traceId">;

function createListener(tell: (event: CallToolResponse) => void, logs: LogHub, labels: Labels): CallListener {
  return {
    onProgress({ done, total, message }) {
      const value = { progress: done, total, message };
      tell(create(CallToolResponseSchema, { event: { case: "progress", value } }));
    },
    onLine(line) {
      logs.write(logLineFrom(line, labels));
      const { level, message, fieldsJson } = line;
      tell(create(CallToolResponseSchema, { event: { case: "log", value: { level, message, fieldsJson } } }));
    },
  };
}

function logLineFrom({ timeMs, level, message, fieldsJson }: WrittenLine, labels: Labels): LogLine {
  return { timeMs, level, message, fieldsJson, ...labels };
}

function checkedArguments(text: string): string {
  if (text === "") return "{}";
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return text;
  } catch (error) {
    refuse("invalid_argument", `arguments_json is not JSON: ${messageFromUnknown(error)}`);
  }
  return refuse("invalid_argument", "arguments_json must be a JSON object");
}
