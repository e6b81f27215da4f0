import { errorOf } from "./error.ts";

export interface ToolContext {
  /** The call's id, the same when the call comes again. */
  readonly callId: string;
  /** Aborts when nobody waits for the result any more. */
  readonly signal: AbortSignal;
}

/** A function of this program that a model may call. */
// biome-ignore lint/suspicious/noExplicitAny: the schema says what the arguments are, and the type checker cannot read it
export interface Tool<Arguments = any> {
  /** 1 to 64 letters, digits, `_` and `-`. */
  readonly name: string;
  /** What it does, in words for the model. */
  readonly description: string;
  /** JSON Schema of the arguments, as `z.toJSONSchema(…)` gives it; any object unless given. */
  readonly input?: object;
  /** Gives the result, which goes to the model as JSON. What it throws is told to the model as the call's error. */
  run(input: Arguments, context: ToolContext): unknown;
}

/** Infers the type of the arguments: `tool<{ order: string }>({ … })`. */
export function tool<Arguments>(given: Tool<Arguments>): Tool<Arguments> {
  return given;
}

export type Outcome = { case: "resultJson"; value: string } | { case: "error"; value: string };

/** Runs it, and gives what is to be answered. */
export async function outcomeOf(
  run: Tool["run"] | undefined,
  argumentsJson: string,
  context: ToolContext,
): Promise<Outcome> {
  try {
    if (run === undefined) throw new Error("this program has no such tool");
    const result = await run(JSON.parse(argumentsJson || "{}"), context);
    return { case: "resultJson", value: JSON.stringify(result ?? null) };
  } catch (error) {
    return { case: "error", value: (error instanceof Error ? error.message : String(error)) || "the tool failed" };
  }
}

/** What the contract says of a call that somebody else has answered, or that nobody waits for: an answer comes too late. */
const overReasons = new Set([
  "CALL_ALREADY_RESOLVED",
  "CALL_EXPIRED",
  "CALL_NOT_AWAITED",
  "CALL_NOT_FOUND",
  "CALL_TAKEN",
  "RUN_ENDED",
  "SESSION_CLOSED",
]);

/** Answers a call; one that is over takes no answer, and that is no fault. */
export async function answerUnlessOver(answer: () => Promise<unknown>): Promise<void> {
  try {
    await answer();
  } catch (thrown) {
    if (!overReasons.has(errorOf(thrown).reason)) throw thrown;
  }
}
