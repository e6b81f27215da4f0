import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

export interface StderrOptions {
  /** Called for each line; one longer than 64 KiB comes in pieces. */
  onLine?: ((line: string) => void) | undefined;
  /** Called for each piece as it comes. */
  onChunk?: ((chunk: Buffer) => void) | undefined;
}

const TAIL_BYTES = 16 * 1024;
const MAX_PIECE_LENGTH = 64 * 1024;
const LONG_MS = 2;
/** Shorter than the time that a child's last words have after its exit. */
const MOST_REST_MS = 100;

/**
 * Drains a child's stderr from the first moment on, since a child whose stderr is full stands still, and keeps its end. A piece whose
 * lines took long is followed by a rest as long (SEC-5): one that writes without end leaves this process half of its time.
 * Gives a function that tells the tail as it is now.
 */
export function drainStderr(stderr: Readable, { onLine, onChunk }: StderrOptions): () => string {
  let tail = Buffer.alloc(0);
  const lines = onLine && splitLines(onLine);
  stderr.on("data", (chunk: Buffer) => {
    const startedAtMs = performance.now();
    tail = Buffer.concat([tail, chunk]).subarray(-TAIL_BYTES);
    lines?.push(chunk);
    onChunk?.(chunk);
    const tookMs = performance.now() - startedAtMs;
    if (tookMs < LONG_MS) return;
    stderr.pause();
    setTimeout(() => stderr.resume(), Math.min(tookMs, MOST_REST_MS));
  });
  stderr.once("close", () => lines?.end());
  stderr.on("error", () => {}); // what cannot be read of a dying child's last words is lost; its exit is reported anyway
  return () => tail.toString("utf8").trimEnd();
}

function splitLines(onLine: (line: string) => void): { push(chunk: Buffer): void; end(): void } {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  return {
    push(chunk) {
      const lines = (rest + decoder.write(chunk)).split(/\r?\n/);
      rest = lines.pop() ?? "";
      for (const line of lines) onLine(line);
      if (rest.length < MAX_PIECE_LENGTH) return;
      onLine(rest);
      rest = "";
    },
    end() {
      rest += decoder.end();
      if (rest !== "") onLine(rest);
    },
  };
}
