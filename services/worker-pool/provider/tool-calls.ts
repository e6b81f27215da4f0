import { create } from "@bufbuild/protobuf";
import { ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import {
  type ExecuteToolRequest,
  type ExecuteToolResponse,
  ExecuteToolResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { type Executed, JoinedCall, JoinedCalls } from "#runtime/results/joined/joined-calls.ts";
import type { Answer } from "../calls/answer.ts";
import type { Execute } from "./execution.ts";

/** How many events of a call are kept for a slow reader, or one that comes later. */
const EVENT_LIMIT = 1_000;

/** Progress and logs of a call, then exactly one result. When the last reader leaves before it, the call is canceled. */
export type RunCall = (request: ExecuteToolRequest, options: RunOptions) => AsyncIterable<ExecuteToolResponse>;

interface RunOptions {
  readonly traceId: string;
  readonly signal: AbortSignal;
  /** Whether another instance gives the call to this one because of its worker. */
  readonly isWarmOnly: boolean;
}

/** Runs calls by their ids: a second one with the same id joins the first, or gets its answer. */
export function createRunCall(execute: Execute): RunCall {
  const calls = new JoinedCalls({ maxRetained: 512, maxRetainedLength: 32 * 2 ** 20 });
  return async function* run(request, { traceId, signal }) {
    signal.throwIfAborted();
    const key = keyOf(request);
    const work = async (call: JoinedCall) =>
      resultFromAnswer(await execute(request, { traceId, tell: (event) => call.tell(event), signal: call.signal }));
    const call = calls.find(key) ?? calls.start(key, new JoinedCall(EVENT_LIMIT), work);
    for await (const event of call.read(signal)) yield create(ExecuteToolResponseSchema, { event });
  };
}

function keyOf({ callId, scope, source, tool }: ExecuteToolRequest): string {
  return JSON.stringify([scope?.principal ?? "", scope?.sessionId ?? "", callId, source?.name ?? "", tool]);
}

function resultFromAnswer(answer: Answer): Executed {
  const isError = answer.kind === "error";
  const outputJson = answer.kind === "error" ? JSON.stringify({ error: answer.error }) : answer.resultJson;
  const { calls: callCount = 0, ...usage } = answer.used ?? {};
  const value = create(ProvidedResultSchema, { outputJson, isError, callCount, ...(answer.used && { usage }) });
  return { case: "result", value };
}
