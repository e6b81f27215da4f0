/**
 * One request to a model, from the call to the last part of its stream.
 *
 * attempt-1  A stream that stays silent for `stallMs` is cut, and its request with it. Silence before the first part counts.
 * attempt-2  What does not end with a finish is no turn: the provider's errors, also those inside a stream, are thrown.
 *     After the finish, the stream has a second to close: then the answer is taken as it is, and the stream canceled.
 * attempt-3  An answer that no log takes is cut as soon as it is known to be one: a model that does not stop costs no memory.
 * attempt-4  Before a failed attempt throws, its caller gets what it used, however it ended.
 */

import { addAbortListener } from "node:events";
import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { openEnding } from "#runtime/time/ending.ts";
import { LONGEST_WAIT_MS, startTimer } from "#runtime/time/timer.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { Answer, Piece, Used } from "./answer.ts";
import { type Collector, createCollector } from "./collector.ts";

export interface AttemptOptions {
  readonly stallMs: number;
  readonly signal: AbortSignal;
  readonly onPiece: (piece: Piece) => void;
  /** How much the model may say: text, thoughts and calls together. */
  readonly maxBytes?: number;
  /** attempt-4. */
  readonly onBroken?: (used: Used) => void;
}

/** The model was silent for too long. */
export class ModelStalled extends Error {
  constructor(stallMs: number) {
    super(`the model was silent for ${stallMs} ms`);
    this.name = "ModelStalled";
  }
}

export async function takeAttempt(
  model: LanguageModelV4,
  call: LanguageModelV4CallOptions,
  { stallMs, signal, onPiece, maxBytes, onBroken }: AttemptOptions,
): Promise<Answer> {
  using ending = openEnding(signal);
  const watchdog = setTimeout(() => ending.end(new ModelStalled(stallMs)), Math.min(stallMs, LONGEST_WAIT_MS)); // attempt-1
  const ends = ending.signal;
  const { prompt } = call;
  const collector = createCollector(model.modelId, onPiece, { prompt, ...(maxBytes !== undefined && { maxBytes }) });
  try {
    const { stream } = await unlessAborted(model.doStream({ ...call, abortSignal: ends }), ends);
    return await readAnswer(stream, { collector, watchdog, ends });
  } catch (error) {
    const used = collector.used();
    if (used !== undefined) onBroken?.(used); // attempt-4
    ends.throwIfAborted(); // the cause of the abort says more than what it made of the request
    ending.end(error);
    throw error;
  } finally {
    clearTimeout(watchdog);
  }
}

/** attempt-2. */
const closeMs = 1_000;

interface Reading {
  readonly collector: Collector;
  readonly watchdog: NodeJS.Timeout;
  readonly ends: AbortSignal;
}

async function readAnswer(
  stream: ReadableStream<LanguageModelV4StreamPart>,
  { collector, watchdog, ends }: Reading,
): Promise<Answer> {
  const reader = stream.getReader();
  // what closing says changes nothing: the answer is complete or given up. It ends a read that waits
  const close = () => void reader.cancel().catch(() => {});
  let stopWaiting: (() => void) | undefined;
  using _ = addAbortListener(ends, close);
  try {
    for (;;) {
      ends.throwIfAborted();
      const { done, value } = await reader.read();
      ends.throwIfAborted();
      if (done) return collector.answer();
      if (stopWaiting === undefined) watchdog.refresh();
      collector.take(value);
      if (value.type !== "finish") continue;
      clearTimeout(watchdog);
      stopWaiting ??= startTimer(closeMs, close); // attempt-2
    }
  } finally {
    stopWaiting?.();
    close();
  }
}
