import { randomName } from "./connection.ts";
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
    return failed(error instanceof Error ? error.message : String(error));
  }
}

function failed(message: string): Outcome {
  return { case: "error", value: message || "the tool failed" };
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

/** What the contract says of an outcome that no call takes, such as a result that is too large. */
const unfitReasons = new Set(["INVALID_REQUEST", "MESSAGE_TOO_LARGE", "RESULT_INVALID"]);

/**
 * Answers a call. A call whose result is refused waits on: it is given the refusal as its error. One that is over takes no answer, and
 * that is no fault.
 */
export async function answerCall(
  outcome: Outcome,
  submit: (answer: { outcome: Outcome; submissionId: string }) => Promise<unknown>,
): Promise<void> {
  const send = (given: Outcome) => submit({ outcome: given, submissionId: randomName() });
  await answerUnlessOver(() =>
    send(outcome).catch((thrown: unknown) => {
      const { reason, message } = errorOf(thrown);
      if (!unfitReasons.has(reason)) throw thrown;
      return send(failed(message));
    }),
  );
}

/** Answers a call; one that is over takes no answer, and that is no fault. */
export async function answerUnlessOver(answer: () => Promise<unknown>): Promise<void> {
  try {
    await answer();
  } catch (thrown) {
    if (!overReasons.has(errorOf(thrown).reason)) throw thrown;
  }
}
