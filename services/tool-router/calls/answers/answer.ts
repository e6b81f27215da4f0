import { create } from "@bufbuild/protobuf";
import type { ProvidedContent, ProvidedResult } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import {
  type CallExecution,
  Effect,
  ExecutionType,
  type Tool,
  type ToolResult,
  ToolResultSchema,
} from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Usage } from "#gen/toolbus/tool/v1/usage_pb.ts";
import { Failure, type ReasonName } from "#runtime/failure/failure.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import { boundedResult, shortenedResult } from "#runtime/results/shortened.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import type { Validator } from "#runtime/schema/json-schema/validator.ts";
import { AGENT_SWITCHED } from "../../sessions/failures.ts";
import { storeContent } from "./content.ts";
import { fitsAsArguments } from "./record-size.ts";
import { fullWhereSilent, type StoreResult, whereFull } from "./where-full.ts";

/** Who executed a call, what was used on its behalf, and what it means for its run. */
export interface CallUse {
  execution?: CallExecution | undefined;
  usage?: Usage | undefined;
  callCount?: number;
  endsRun?: boolean;
}

/**
 * What a call answered; a failure is `{"error":"<text>"}` with `isError`, whatever the kind (KIND-4). The bytes of what a provider gave
 * beside the result's text (`provided`) are not stored yet.
 */
export type Answer = ToolResult & CallUse & { provided?: readonly ProvidedContent[] };

export function success(output: unknown): Answer {
  return successJson(JSON.stringify(output ?? null));
}

/** For what is JSON text already, and goes on byte for byte. */
export function successJson(outputJson: string): Answer {
  return create(ToolResultSchema, { outputJson });
}

export function failure(text: string, reason?: ReasonName): Answer {
  return errorResult(text, reason);
}

/** The outcome of something that must not be repeated is unknown (LOOP-14). */
export function outcomeUnknown(why: string, reason?: ReasonName): Answer {
  return failure(`outcome_unknown: ${why}`, reason);
}

/** Nobody waits for the call any more; what must not be repeated may have happened. */
export function canceled(effect: Effect, cause?: unknown): Answer {
  const why = cause instanceof Failure && cause.reason === AGENT_SWITCHED ? cause.message : "the call was canceled";
  return effect === Effect.AT_MOST_ONCE ? outcomeUnknown(why, "CANCELED") : failure(why, "CANCELED");
}

/** Where a result is stored is for the router to say: a provider has no word in it. */
export function answerFromProvider({ outputJson, isError, reason, metaJson, ...result }: ProvidedResult): Answer {
  const provided = result.content.length > 0 || metaJson !== "" ? { provided: result.content } : {};
  const answer = create(ToolResultSchema, { outputJson, isError, reason, metaJson });
  return { ...answer, ...useOf(result), endsRun: result.endsRun, ...provided };
}

interface CallOwner {
  readonly sessionId: string;
  readonly principal: string;
  /** Whether the call may be executed again, with all of its result. */
  readonly isRepeatable: boolean;
}

export interface Answers {
  /** LOOP-8: JSON where JSON is promised, the schema where there is one, and no more bytes than a message holds. */
  finish(tool: Tool, result: Answer, of: CallOwner): Promise<Answer>;
  /** Stores what is larger than a message holds, and gives its beginning with the reference. */
  bound(answer: Answer, sessionId: string): Promise<Answer>;
  /** Stores arguments that are too large for a record, and gives the reference; empty for others, and where no room is left. */
  storeArguments(argumentsJson: string, sessionId: string): Promise<string>;
}

export function createAnswers(options: { validator: Validator; maxBytes: number; store: StoreResult }): Answers {
  const { validator, maxBytes, store } = options;

  async function checked(tool: Tool, result: Answer, { principal }: CallOwner): Promise<Answer> {
    if (result.isError) return asError(result);
    const fault = await validator.faultOfResult(promisedSchema(tool), result.outputJson, principal);
    if (fault === undefined) return result;
    const text = `Tool ${JSON.stringify(tool.name)} answered with something invalid: ${fault}`;
    return { ...failure(text), ...useOf(result) };
  }

  const bound = (answer: Answer, sessionId: string, to = store) =>
    boundedResult(answer, maxBytes, (whole) => to(sessionId, whole));

  /** A call that has happened has its result, also where the whole of it finds no room. */
  function kept(answer: Answer, stored: Promise<Answer>): Promise<Answer> {
    return stored.catch(whereFull(({ message }) => shortenedResult(answer, maxBytes, { unkept: message })));
  }

  return {
    async finish(tool, result, of) {
      const whole = await checked(tool, result, of);
      const { sessionId, isRepeatable } = of;
      const to = isRepeatable ? store : fullWhereSilent(store);
      const { provided, ...answer } = whole;
      if (provided === undefined) return kept(whole, bound(whole, sessionId, to));
      const told = await storeContent({ ...answer, provided }, (bytes) => to(sessionId, bytes));
      const held = { ...answer, ...told };
      return kept(held, bound(held, sessionId, to));
    },
    bound,
    async storeArguments(argumentsJson, sessionId) {
      if (fitsAsArguments(argumentsJson)) return "";
      return store(sessionId, argumentsJson).catch(whereFull(() => ""));
    },
  };
}

/** Arguments that are the result need no check. */
function promisedSchema({ executionType, outputSchemaJson }: Tool): string {
  return executionType === ExecutionType.INTERNAL ? "" : outputSchemaJson;
}

/** Whatever a provider called an error comes out in the one form. */
function asError(result: Answer): Answer {
  try {
    const output: unknown = JSON.parse(result.outputJson);
    if (isObject(output) && typeof output.error === "string") return result;
  } catch {
    // no JSON: the text itself is the error
  }
  return { ...failure(result.outputJson), ...useOf(result) };
}

/** What was used on the call's behalf was used, whatever becomes of what it said. */
function useOf({ execution, usage, callCount = 0 }: CallUse): CallUse {
  return { callCount, ...(usage && { usage }), ...(execution && { execution }) };
}
