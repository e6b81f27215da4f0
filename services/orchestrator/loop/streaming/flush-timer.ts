/**
 * The beat at which all runs of this process send what their models have said meanwhile: one timer for all, so that what many
 * say leaves together. The more of them speak, the longer the beat: a reader does not notice, and each message costs the same
 * however much is in it.
 */

const shortestMs = 20;
const longestMs = 80;
const msForEach = 0.2;

let waiting = new Set<() => void>();
let isRunning = false;
let beatMs = shortestMs;

/** Calls `send` at the next beat, once however often it is asked for. */
export function scheduleFlush(send: () => void): void {
  waiting.add(send);
  if (isRunning) return;
  isRunning = true;
  setTimeout(beat, beatMs);
}

/** What was to be sent at the next beat has gone. */
export function unscheduleFlush(send: () => void): void {
  waiting.delete(send);
}

function beat(): void {
  const due = waiting;
  waiting = new Set();
  isRunning = false;
  beatMs = Math.min(longestMs, shortestMs + due.size * msForEach);
  for (const send of due) send();
}
