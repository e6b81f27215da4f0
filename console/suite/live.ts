import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { resumed } from "#runtime/rpc/watching/resumed.ts";
import { errorOf, isPassing } from "../../sdk/typescript/client/error.ts";
import { noteAnswer, noteFailure, untilSilence } from "./connection.ts";
import { createFrames } from "./frames.ts";

/** What a stream keeps up to date. */
export interface Followed<T> {
  /** Opens it where it was left, so that what was taken does not come again. */
  open(signal: AbortSignal): AsyncIterable<T>;
  take(message: T): void;
}

/**
 * Follows a stream while its component is shown and its tab is looked at, however often it breaks: a browser has six connections to a
 * gateway for all of its tabs, and a stream holds one. The component is rendered once a frame at
 * most, so that a stream that tells thousands of things a second does not outrun it. A new `id` begins anew.
 */
export function useFollowed<T, M extends Followed<T>>(
  id: string,
  create: () => M,
): { model: M; fault: string | undefined } {
  const fault = useSignal<string>();
  const version = useSignal(0);
  const model = useMemo(create, [id]);
  useEffect(() => {
    let closing = new AbortController();
    const frames = createFrames(() => {
      version.value += 1;
    });
    const followInSight = () => {
      closing.abort();
      closing = new AbortController();
      fault.value = undefined;
      if (document.hidden) return;
      void follow(model, closing.signal, frames.request, (text) => {
        fault.value = text;
      });
    };
    followInSight();
    document.addEventListener("visibilitychange", followInSight);
    return () => {
      document.removeEventListener("visibilitychange", followInSight);
      closing.abort();
      frames.cancel();
    };
  }, [model]);
  version.value; // read, so that the component is rendered again when it changes
  return { model, fault: fault.value };
}

/** A share of the gateway that is used up has room again a little later. */
export function isResumed(error: unknown): boolean {
  return isPassing(error) || errorOf(error).reason === "SHARE_EXCEEDED";
}

async function follow<T>(
  model: Followed<T>,
  signal: AbortSignal,
  changed: () => void,
  failed: (text: string) => void,
): Promise<void> {
  async function* opened() {
    try {
      yield* model.open(untilSilence(signal));
    } catch (error) {
      if (!signal.aborted) noteFailure(error);
      throw error;
    }
  }
  try {
    for await (const message of resumed({
      open: opened,
      isPassing: isResumed,
      patienceMs: Number.POSITIVE_INFINITY,
      signal,
    })) {
      noteAnswer();
      model.take(message);
      changed();
    }
  } catch (error) {
    if (!signal.aborted) failed(noteFailure(error) ?? String(error));
  }
}
