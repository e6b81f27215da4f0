import { createInterface } from "node:readline";
import { openEnding } from "#runtime/time/ending.ts";

export interface TypedLines extends Disposable {
  /** The next line, or all that were pasted at once; undefined when nobody writes any more, or when `signal` aborts, which takes no line. */
  next(prompt: string, signal?: AbortSignal): Promise<string | undefined>;
  /** Likewise, for a question: what somebody typed before it was asked answers something else, and is left for `next`. */
  answer(prompt: string, signal?: AbortSignal): Promise<string | undefined>;
  /** Whether somebody sits there. */
  readonly isTerminal: boolean;
}

/**
 * Lines of standard input. Where somebody sits there, with a prompt on standard error, editing and history.
 * @param interrupted What Ctrl-C does.
 */
export function openTypedLines(interrupted: () => void): TypedLines {
  const isTerminal = process.stdin.isTTY === true && process.stderr.isTTY === true;
  const input = createInterface({ input: process.stdin, output: isTerminal ? process.stderr : undefined });
  const typed: string[] = [];
  let pasted: string[] = [];
  let isOver = false;
  let wanted: (() => void) | undefined;

  function give(text: string): void {
    typed.push(text);
    wanted?.();
  }
  input.on("line", (line) => {
    if (!isTerminal) return give(line);
    if (pasted.push(line) > 1) return;
    setImmediate(() => {
      give(pasted.join("\n"));
      pasted = [];
    });
  });
  input.once("close", () => {
    isOver = true;
    wanted?.();
  });
  input.on("SIGINT", interrupted);
  process.on("SIGINT", interrupted);

  async function lineBehind(before: number, prompt: string, signal: AbortSignal | undefined) {
    using leaving = openEnding(signal);
    if (isTerminal && !isOver && typed.length === before) {
      input.setPrompt(prompt);
      input.prompt(true);
    }
    while (typed.length === before && !isOver && !leaving.signal.aborted) {
      await new Promise<void>((resolve) => {
        wanted = resolve;
        leaving.signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    return leaving.signal.aborted ? undefined : typed.splice(before, 1)[0];
  }

  return {
    isTerminal,
    next: (prompt, signal) => lineBehind(0, prompt, signal),
    answer: (prompt, signal) => lineBehind(isTerminal ? typed.length : 0, prompt, signal),
    [Symbol.dispose]() {
      process.off("SIGINT", interrupted);
      input.close();
      process.stdin.destroy();
    },
  };
}
