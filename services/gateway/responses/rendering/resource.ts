import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { JsonOutput } from "#gen/toolbus/run/v1/model_settings_pb.ts";
import type { RunAccepted, RunEnded } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunEndReasonSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import type { Tokens } from "#runtime/money/tokens.ts";
import { enumWord } from "#runtime/schema/enum-word.ts";
import { metadataOf, notesOf } from "../request/notes.ts";
import { toolChoiceFrom, toolsFrom } from "./tools.ts";

/** An item of output, as the specification has it. */
export interface OutputItem {
  readonly type: string;
  readonly id: string;
  readonly [field: string]: unknown;
}

/** A run, as far as a response tells of it. */
export interface RenderedRun {
  readonly runId: string;
  readonly accepted: RunAccepted;
  readonly createTime: Timestamp | undefined;
  readonly hasBegun: boolean;
  readonly ended: { readonly event: RunEnded; readonly time: Timestamp | undefined } | undefined;
  readonly used: Tokens;
  readonly output: readonly OutputItem[];
}

export interface ResponseResource {
  readonly id: string;
  readonly status: string;
  readonly output: readonly OutputItem[];
  readonly incomplete_details: { readonly reason: string } | null;
  readonly [field: string]: unknown;
}

export const responseIdOf = (runId: string) => `resp_${runId}`;

/** The response with every field that the specification and the strictest clients ask for. */
export function responseFrom(run: RenderedRun): ResponseResource {
  const { runId, accepted, createTime, ended, output } = run;
  const { options, previousRunId } = accepted;
  const status = statusOf(run);
  const notes = notesOf(options);
  const settings = options?.modelSettings;
  return {
    id: responseIdOf(runId),
    object: "response",
    created_at: secondsOf(createTime),
    completed_at: status === "completed" ? secondsOf(ended?.time) : null,
    status,
    background: notes.background ?? false,
    error: status === "failed" && ended ? errorFrom(ended.event) : null,
    incomplete_details: status === "incomplete" && ended ? { reason: codeOf(ended.event) } : null,
    instructions: notes.instructions ?? null,
    max_output_tokens: settings?.maxOutputTokens ?? null,
    max_tool_calls: options?.limits?.maxToolCalls ?? null,
    model: accepted.agent,
    output: [...output],
    parallel_tool_calls: options?.parallelToolCalls ?? true,
    previous_response_id: previousRunId === "" ? null : responseIdOf(previousRunId),
    prompt_cache_key: notes.prompt_cache_key ?? null,
    reasoning: { effort: notes.reasoning?.effort ?? null, summary: notes.reasoning?.summary ?? null },
    safety_identifier: notes.safety_identifier ?? null,
    service_tier: "default",
    store: notes.store ?? true,
    temperature: settings?.temperature ?? 1,
    text: { format: formatFrom(settings?.jsonOutput) },
    tool_choice: toolChoiceFrom(options),
    tools: toolsFrom(options),
    top_logprobs: 0,
    top_p: settings?.topP ?? 1,
    presence_penalty: settings?.presencePenalty ?? 0,
    frequency_penalty: settings?.frequencyPenalty ?? 0,
    truncation: notes.truncation ?? "disabled",
    usage: ended ? usageFrom(run.used) : null,
    user: notes.user ?? null,
    metadata: metadataOf(options),
  };
}

function formatFrom(output: JsonOutput | undefined): object {
  if (output === undefined) return { type: "text" };
  const { schemaJson, name, description, strict } = output;
  if (schemaJson === "") return { type: "json_object" };
  const format = { type: "json_schema", name, description: description || null, strict: strict ?? false };
  return { ...format, schema: JSON.parse(schemaJson) };
}

function statusOf({ ended, hasBegun }: RenderedRun): string {
  if (ended === undefined) return hasBegun ? "in_progress" : "queued";
  return STATUSES[ended.event.state] ?? "failed";
}

const STATUSES: Partial<Record<RunState, string>> = {
  [RunState.COMPLETED]: "completed",
  [RunState.INCOMPLETE]: "incomplete",
  [RunState.FAILED]: "failed",
  [RunState.CANCELED]: "cancelled",
};

/** Why the run ended, in the contract's words. */
const codeOf = ({ endReason }: RunEnded) => enumWord(RunEndReasonSchema, endReason);

/** In the form of errors of requests, which the AI SDK asks for. Some clients take a stream that ends with a `server_error` for one to ask for again. */
export const NO_ANSWER = { type: "model_error", param: "" };
const errorFrom = (ended: RunEnded) => ({ ...NO_ANSWER, code: codeOf(ended), message: ended.error });

function secondsOf(time: Timestamp | undefined): number {
  return Number(time?.seconds ?? 0n);
}

export type ResponseUsage = ReturnType<typeof usageFrom>;

function usageFrom({ inputTokens, outputTokens, ...apart }: Tokens) {
  const { cachedInputTokens, cacheWriteTokens, reasoningTokens } = apart;
  return {
    input_tokens: Number(inputTokens),
    input_tokens_details: { cached_tokens: Number(cachedInputTokens), cache_write_tokens: Number(cacheWriteTokens) },
    output_tokens: Number(outputTokens),
    output_tokens_details: { reasoning_tokens: Number(reasoningTokens) },
    total_tokens: Number(inputTokens + outputTokens),
  };
}
