import { constants } from "node:os";
import type { ChildExit } from "#runtime/lifecycle/child-process/exit.ts";

const LINES = 40;
const LENGTH = 4_000;
/** Of one: the names of all extension modules, with which Python ends its report of a crash, leave room for it. */
const LINE_LENGTH = 1_000;

export type LastWords = ReturnType<typeof createLastWords>;

/** The end of the log of a worker, or of one call on it, for the report of a crash. */
export function createLastWords() {
  const messages: string[] = [];
  return {
    add(message: string): void {
      messages.push(message.slice(-LINE_LENGTH));
      if (messages.length > LINES) messages.shift();
    },
    /** `ended with SIGSEGV: …`. */
    textFromExit({ code, signal }: ChildExit): string {
      const tail = this.tail();
      const how = signal ?? signalFromCode(code) ?? `code ${code}`;
      return tail ? `ended with ${how}: ${tail}` : `ended with ${how}`;
    },
    tail: () => messages.join("\n").slice(-LENGTH).trim(),
  };
}

/** `uv run` passes on the death of its Python by a signal as a shell does: 128 and the signal's number. */
function signalFromCode(code: number | null): string | undefined {
  if (code === null || code <= 128) return undefined;
  return Object.entries(constants.signals).find(([, number]) => number === code - 128)?.[0];
}
