/**
 * The way of a call:
 *
 *   are file and function known? ──▶ a place on the worker (in line, or refused) ──▶ the worker is installed, started or ready
 *     ──▶ a place in the pool ──▶ the function, until it answers, its time ends, its caller cancels, or the worker crashes
 *
 * A file without PEP 723 metadata, or with malformed metadata, offers nothing; `GetProvidedTools` and `ListWorkers` say why.
 * Dependencies are installed when a file appears. An earlier call waits for that, within a limit of its own that does not count
 * as the call's time. A call whose time is over is canceled: a coroutine as a task, a function in its thread by an exception.
 * After the third crash in a row without an answer, the worker is backed off, and calls are told why and for how long.
 *
 * | failure of the RPC                                           | meaning                                       |
 * | ------------------------------------------------------------ | --------------------------------------------- |
 * | `not_found`, `invalid_argument`, `failed_precondition`       | nothing was started, and the message says why |
 * | `resource_exhausted`                                         | nothing was started: everything is busy       |
 * | `unavailable`, reason `WORKER_BACKED_OFF`, `WORKER_STOPPED`  | nothing was started                           |
 * | `deadline_exceeded`, reason `CALL_NOT_STARTED`               | nothing was started: it waited for its place  |
 * | `unavailable`, reason `WORKER_CRASHED`; `deadline_exceeded`  | the outcome is unknown                        |
 *
 * What a function raises is no failure of the RPC but a result with `is_error`, like `{"error":"ValueError: bad"}`. A worker gets
 * the secrets that the source's entry names with each request, never in its environment; logs and errors do not show their values.
 */

import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { ExecuteToolRequest } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Source } from "#gen/toolbus/tool/v1/source_pb.ts";
import { ToolLogSchema, ToolProgressSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { nothingUsed, toldUse } from "#runtime/money/run-share.ts";
import type { CallEvent } from "#runtime/results/joined/joined-calls.ts";
import { decodeRunContext } from "#runtime/rpc/run-context.ts";
import { parseBounded } from "#runtime/schema/json/json-size.ts";
import { parseToolArguments } from "#runtime/schema/tools/tool-arguments.ts";
import type { BuiltIns } from "../built-ins/built-ins.ts";
import type { Answer } from "../calls/answer.ts";
import { isModuleFileName, sourceFromFile } from "../files/tool-file.ts";
import type { HostedModules } from "../hosted/hosted-modules.ts";
import type { LogHub } from "../logs/log-hub.ts";
import type { Pool } from "../pool/pool.ts";
import type { CallListener } from "../worker/call-in-flight.ts";
import type { Ask } from "../worker/frames.ts";
import type { Host } from "../worker/host.ts";
import type { Secrets } from "./secrets.ts";
import { parseSourceConfig } from "./source-config.ts";

interface ExecutionContext {
  traceId: string;
  /** Told of progress and logs. */
  tell: (event: CallEvent) => void;
  signal: AbortSignal;
}

/** Carries a call out. Rejects with a Failure where nothing was started, or the outcome is unknown. */
export type Execute = (request: ExecuteToolRequest, context: ExecutionContext) => Promise<Answer>;

export interface ExecutionParts {
  pool: Pool;
  builtIns: BuiltIns;
  hosted: HostedModules;
  /** What calls on workers reach through the service. */
  host: Host;
  secrets: Secrets;
  logs: LogHub;
  /** Whether there is such a file of Python. */
  hasFile: (file: string) => boolean;
  /** Of a call that comes without a deadline. */
  callMs: number;
}

/**
 * Who carries a call out: with a source a function of that file or a tool of that module; without one the built-in that the
 * policy is for, or the hosted tool of that name.
 */
export function createExecution(parts: ExecutionParts): Execute {
  const { pool, builtIns, hosted, secrets, logs } = parts;

  function createListener(request: ExecuteToolRequest, { source, traceId, tell }: Given): Omit<CallListener, "onAsk"> {
    const { tool, callId } = request;
    const labels = { source, function: tool, callId, traceId, principal: principalOf(request) };
    return {
      onProgress({ done, total, message }) {
        tell({ case: "progress", value: create(ToolProgressSchema, { progress: done, total, message }) });
      },
      onLine(line) {
        const { level, message, fieldsJson } = line;
        logs.write({ ...line, ...labels });
        tell({ case: "log", value: create(ToolLogSchema, { level, message, fieldsJson }) });
      },
    };
  }

  async function callFile(request: ExecuteToolRequest, source: Source, context: Context): Promise<Answer> {
    const { files, secrets: names, config } = parseSourceConfig(source.name, source.config);
    const secretsJson = secrets.jsonOf(source.name, names);
    const configJson = JSON.stringify({ ...config, ...request.config });
    const [first = ""] = files;
    const file = files.find((file) => parts.hasFile(file) || hosted.find(file)) ?? first;
    return call(request, { ...context, configJson, secretsJson, source: source.name }, file);
  }

  async function call(request: ExecuteToolRequest, given: Given, file: string): Promise<Answer> {
    const { tool, callId: idempotencyKey } = request;
    const { argumentsJson, configJson, secretsJson, timeoutMs, signal } = given;
    const asking = createAsking(parts, request, timeoutMs);
    const listener = { ...createListener(request, given), onAsk: asking.onAsk };
    const asked = { function: tool, argumentsJson, configJson, secretsJson, idempotencyKey };
    const more = { ...asked, file, principal: principalOf(request), timeoutMs, signal, listener };
    const calling = isModuleFileName(file)
      ? hosted.pool.call({ ...more, source: sourceFromFile(file) }) // it has one process for all sources
      : pool.call({ ...more, source: given.source });
    return asking.told(await calling);
  }

  return async (request, { traceId, tell, signal }) => {
    parseToolArguments(request.argumentsJson, parseBounded);
    const argumentsJson = request.argumentsJson || "{}";
    const timeoutMs = request.deadline ? Math.max(0, timestampMs(request.deadline) - Date.now()) : undefined;
    const context: Context = { traceId, tell, signal, argumentsJson, timeoutMs };
    const { source, tool, builtinPolicy: policy } = request;
    if (source) return callFile(request, source, context);
    const file = hosted.fileOf(tool);
    if (policy || !file)
      return builtIns.call({ tool, policy, principal: principalOf(request), argumentsJson, timeoutMs, signal });
    const configJson = JSON.stringify(request.config ?? {});
    return call(request, { ...context, configJson, secretsJson: "{}", source: "" }, file);
  };
}

const principalOf = ({ scope }: ExecuteToolRequest): string => scope?.principal ?? "";

/** What is done on a call's behalf: inside what its run leaves to it, and counted there. */
function createAsking(parts: ExecutionParts, request: ExecuteToolRequest, timeoutMs = parts.callMs) {
  const { callId, scope, runContext } = request;
  const { bounds, allowedTools } = decodeRunContext(runContext);
  const used = nothingUsed();
  let asks = 0;
  return {
    onAsk(ask: Ask, signal: AbortSignal): Promise<Answer> {
      const call = { callId, scope, bounds, allowedTools, used, deadlineMs: Date.now() + timeoutMs, signal };
      return parts.host.answer(ask, `${callId}_${++asks}`, call);
    },
    told: (answer: Answer): Answer => (asks === 0 ? answer : { ...answer, used: toldUse({ bounds }, used) }),
  };
}

type Context = ExecutionContext & { argumentsJson: string; timeoutMs: number | undefined };
type Given = Context & { configJson: string; secretsJson: string; source: string };
