/** Why a call may end without a result: each says what happened in words that a model can act on. */
const reasons: Readonly<Record<string, RegExp>> = {
  outcome_unknown: /^outcome_unknown: /,
  no_watcher: /^Tool ".*" has no watcher: /,
  timed_out: /^Tool timed out after \d+ms$/,
  not_offered: /^the call could not be offered to a watcher: /,
};

/** The name of the reason that an error result tells; undefined when it is none that may be. */
export function reasonOf(outputJson: string): string | undefined {
  const text = errorOf(outputJson);
  return Object.keys(reasons).find((name) => reasons[name]?.test(text));
}

export function errorOf(outputJson: string): string {
  const output: unknown = JSON.parse(outputJson);
  const isError = typeof output === "object" && output !== null && "error" in output;
  return isError ? String(output.error) : "";
}

/** What an asynchronous call answers at once (TOOL-4). */
export function isPendingAnswer(outputJson: string, callId: string): boolean {
  const output: unknown = JSON.parse(outputJson);
  const isObject = typeof output === "object" && output !== null;
  return isObject && "pendingToolCallId" in output && output.pendingToolCallId === callId;
}

/** What a submitter says of a call: which one it was, who executed it, and who says so. */
export interface SubmittedValue {
  readonly number: number;
  readonly watcher: string;
  readonly submitter: string;
}

export function submittedValueFrom(resultJson: string): SubmittedValue {
  return JSON.parse(resultJson) as SubmittedValue;
}
