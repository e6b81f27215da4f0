import {
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  fromJson,
  type JsonObject,
  type JsonValue,
  toJson,
} from "@bufbuild/protobuf";
import type { CallOptions, Transport } from "@connectrpc/connect";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { iterableOf } from "#runtime/rpc/handling/iterable-of.ts";
import { openEnding } from "#runtime/time/ending.ts";

/** The services of the suite, on somebody's behalf: each call is held to its method's rule, and to the contract's form. */
export interface Methods {
  readonly transportOf: (service: DescService) => Transport;
  readonly options: CallOptions & { readonly signal: AbortSignal };
}

/** Part of a watch, as it came. */
export interface Watched {
  readonly updates: readonly JsonValue[];
  /** Whether the watch came to its own end: there is nothing to wait for any more. */
  readonly ended: boolean;
}

const TIMEOUT_MS = 30_000;
/** A client's model takes no more at once. */
const MAX_CHARACTERS = 60_000;

/** Calls a method that has one answer. */
export async function askMethod(methods: Methods, method: DescMethodUnary, given: JsonObject): Promise<JsonValue> {
  const { signal, contextValues } = methods.options;
  const transport = methods.transportOf(method.parent);
  const { message } = await transport.unary(method, signal, TIMEOUT_MS, {}, requestFrom(method, given), contextValues);
  return toJson(method.output, message);
}

/** What a watch sends for so long, until so much of it came. */
export async function watchMethod(
  methods: Methods,
  method: DescMethodServerStreaming,
  { given, maxUpdates, maxMs }: { given: JsonObject; maxUpdates: number; maxMs: number },
): Promise<Watched> {
  const { signal, contextValues } = methods.options;
  const request = requestFrom(method, given);
  using ending = openEnding(signal);
  const late = setTimeout(() => ending.end(), maxMs);
  const updates: JsonValue[] = [];
  let characters = 0;
  try {
    const { message: messages } = await methods
      .transportOf(method.parent)
      .stream(method, ending.signal, undefined, {}, iterableOf(request), contextValues);
    for await (const message of messages) {
      const update = toJson(method.output, message);
      updates.push(update);
      characters += JSON.stringify(update).length;
      if (updates.length >= maxUpdates || characters >= MAX_CHARACTERS) return { updates, ended: false };
    }
    return { updates, ended: true };
  } catch (error) {
    if (!ending.signal.aborted || signal.aborted) throw error;
    return { updates, ended: false };
  } finally {
    clearTimeout(late);
    ending.end(); // a stream that is left would go on
  }
}

function requestFrom({ input }: DescMethod, given: JsonObject) {
  try {
    return fromJson(input, given);
  } catch (cause) {
    const text = messageFromUnknown(cause);
    return refuse("invalid_argument", `the arguments do not fit: ${text}`, { reason: "INVALID_REQUEST", cause });
  }
}
