import type { Readable } from "node:stream";

const TICK_MS = 50;
const IDLE_TICKS = 4;
const ABANDONED_TICKS = 600;

/**
 * Keeps what a child writes until somebody reads it: without a listener, Node throws away what is unread when a child exits.
 */
export function holdOutput(stdout: Readable): void {
  stdout.on("readable", () => {});
  stdout.on("error", () => {}); // its reader gets the error; without a reader nobody misses it
}

/**
 * After the exit of a child: ends its output when a descendant out of reach holds it open and nothing comes any more,
 * or when nobody reads what is left. What was written before the exit is still read, at the pace of the reader.
 */
export function letGoOfOutput(stdout: Readable & { bytesRead?: number }): void {
  let idleTicks = 0;
  let seen = "";
  const timer = setInterval(() => {
    if (stdout.destroyed || stdout.readableEnded) {
      clearInterval(timer);
      return;
    }
    const progress = `${stdout.bytesRead} ${stdout.readableLength}`;
    idleTicks = progress === seen ? idleTicks + 1 : 0;
    seen = progress;
    if (idleTicks >= (stdout.readableLength === 0 ? IDLE_TICKS : ABANDONED_TICKS)) stdout.destroy();
  }, TICK_MS);
  timer.unref();
}

/** Resolves when the stream has closed, by itself or, after the wait, by force. */
export function closedWithin(ms: number, stream: Readable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.closed) {
      resolve();
      return;
    }
    const timer = setTimeout(() => stream.destroy(), ms);
    stream.once("close", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
