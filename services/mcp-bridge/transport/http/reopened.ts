import { repeatUntilAborted } from "#runtime/time/retry/retry.ts";

/** A stream that lived for that long was sound; one that did not makes the next wait longer. */
const SOUND_MS = 30_000;

/**
 * Reads a stream of a server for as long as the signal allows: one that ends is opened again, more and more rarely, and never given up,
 * unless `read` gives `done`. What came between two of them may have been missed.
 */
export function reopened(
  read: (isReopened: boolean) => Promise<unknown>,
  options: { signal: AbortSignal; onError: (error: unknown) => void },
): Promise<void> {
  let isReopened = false;
  const readOnce = async (works: () => void) => {
    const openedAtMs = performance.now();
    try {
      return await read(isReopened);
    } finally {
      isReopened = true;
      if (performance.now() - openedAtMs > SOUND_MS) works();
    }
  };
  return repeatUntilAborted(readOnce, { initialMs: 500, maxMs: 60_000, ...options });
}
