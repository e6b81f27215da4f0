import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { awaitAnswer, noteAnswer, noteFailure, untilSilence } from "./connection.ts";
import { isResumed } from "./live.ts";

/** How long what is asked once waits for a suite that was not reached, or had no room, in ms. */
const missedMs = 2_000;

/** For how long it is not asked again after an answer that took so long, in ms: who has much to look through has other work, too. */
const pauseMs = (tookMs: number) => Math.min(10_000, 4 * tookMs);

export interface Polled<T> {
  readonly value: T | undefined;
  readonly fault: string | undefined;
  /** Asks at once, or as soon as there is an answer to what is being asked: that one may tell of what was before. */
  again(): void;
}

/**
 * Asks again and again while its component is shown and its tab is looked at: what has no watch in the contract. The next
 * question waits for the answer of the one before. `everyMs` 0 asks once. A new `id` asks anew.
 */
export function usePolled<T>(id: string, ask: (signal: AbortSignal) => Promise<T>, everyMs: number): Polled<T> {
  const value = useSignal<T>();
  const fault = useSignal<string>();
  const wake = useRef(() => {});
  useEffect(() => {
    value.value = undefined;
    fault.value = undefined;
    const closing = new AbortController();
    const { signal } = closing;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    let isAskedAgain = false;

    async function askOnce(): Promise<void> {
      clearTimeout(timer);
      isAskedAgain = isAsking;
      if (isAsking || signal.aborted) return;
      isAsking = true;
      const askedMs = performance.now();
      let isMissed = false;
      let leastMs = 0;
      const endWait = awaitAnswer();
      try {
        const answer = await ask(untilSilence(signal));
        noteAnswer();
        leastMs = pauseMs(performance.now() - askedMs);
        if (signal.aborted) return;
        value.value = answer;
        fault.value = undefined;
      } catch (error) {
        if (!signal.aborted) fault.value = noteFailure(error);
        isMissed = fault.value === undefined || isResumed(error);
      } finally {
        endWait();
        isAsking = false;
      }
      if (isAskedAgain) return askOnce();
      const waitMs = everyMs > 0 ? Math.max(everyMs, leastMs) : isMissed ? missedMs : 0;
      if (waitMs > 0 && !document.hidden && !signal.aborted) timer = setTimeout(askOnce, waitMs);
    }

    wake.current = () => void askOnce();
    document.addEventListener("visibilitychange", wake.current, { signal });
    wake.current();
    return () => {
      closing.abort();
      clearTimeout(timer);
    };
  }, [id]);
  return { value: value.value, fault: fault.value, again: () => wake.current() };
}
