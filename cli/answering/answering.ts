/**
 * Answers the calls that a run waits for with lines that somebody writes: one each, in the order in which they are asked for.
 *
 * A line is the output as JSON, or `!` and why the call failed. What does not fit is asked for again. A call that somebody else
 * answers meanwhile is not asked for any more, and its line is the next call's.
 */

import { Code, ConnectError } from "@connectrpc/connect";
import type { FunctionCall } from "#gen/toolbus/run/v1/run_pb.ts";
import type { WatchRunResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Submission } from "#runtime/results/submission.ts";
import { submissionOf } from "./submission.ts";

export interface AnsweringOptions {
  readonly lines: AsyncIterator<string>;
  /** Shows a call that waits; with what was wrong with its last line. */
  readonly ask: (call: FunctionCall, fault?: string) => void;
  readonly submit: (callId: string, submission: Submission) => Promise<unknown>;
}

export interface Answering {
  /** What happens in the run. */
  see(response: WatchRunResponse): void;
  /** Aborts when no line is left for a call that waits, or when answering fails. */
  readonly left: AbortSignal;
  /** The calls that still wait. */
  readonly waiting: readonly FunctionCall[];
}

/** Nobody writes any more. */
export class LinesEnded extends Error {}

export function createAnswering({ lines, ask, submit }: AnsweringOptions): Answering {
  const waiting = new Map<string, { call: FunctionCall; answered: PromiseWithResolvers<undefined> }>();
  const left = new AbortController();
  let line: Promise<IteratorResult<string>> | undefined;
  let isWorking = false;

  async function work(): Promise<void> {
    for (const [callId, { call, answered }] of waiting) {
      for (let fault: string | undefined; waiting.has(callId); ) {
        ask(call, fault);
        line ??= lines.next();
        const read = await Promise.race([line, answered.promise]);
        if (read === undefined) break;
        line = undefined;
        if (read.done) throw new LinesEnded();
        fault = await faultOfSubmitting(callId, read.value);
        if (fault === undefined) waiting.delete(callId);
      }
    }
  }

  async function faultOfSubmitting(callId: string, text: string): Promise<string | undefined> {
    try {
      await submit(
        callId,
        text.startsWith("!") ? submissionOf("", text.slice(1).trim()) : submissionOf(text, undefined),
      );
      return undefined;
    } catch (error) {
      if (error instanceof ConnectError && error.code === Code.FailedPrecondition) return undefined; // it waits no more
      if (error instanceof ConnectError && error.code === Code.InvalidArgument) return error.rawMessage;
      throw error;
    }
  }

  function start(): void {
    if (isWorking || waiting.size === 0 || left.signal.aborted) return;
    isWorking = true;
    const goOn = () => {
      isWorking = false;
      start(); // what came as the work ended
    };
    work()
      .catch((error: unknown) => left.abort(error))
      .then(goOn);
  }

  return {
    left: left.signal,
    get waiting() {
      return [...waiting.values()].map(({ call }) => call);
    },
    see({ update }) {
      const event = update.case === "event" ? update.value.event : undefined;
      if (event?.case === "callFinished") {
        waiting.get(event.value.callId)?.answered.resolve(undefined);
        waiting.delete(event.value.callId);
      }
      if (event?.case !== "parked") return;
      for (const call of event.value.calls) {
        if (!waiting.has(call.callId)) waiting.set(call.callId, { call, answered: Promise.withResolvers() });
      }
      start();
    },
  };
}
