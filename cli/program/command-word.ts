/** Global options whose value is the next word. */
export const VALUED_OPTIONS: ReadonlySet<string> = new Set(["-u", "--url", "--api-key", "--context"]);

/** The command that is called; what is said to an agent, and what it is called, may be the name of another. */
export function commandIn(words: readonly string[]): string | undefined {
  for (let index = 0; index < words.length; index += 1) {
    const word = words[index] ?? "";
    if (VALUED_OPTIONS.has(word)) index += 1;
    else if (!word.startsWith("-")) return word;
  }
  return undefined;
}

/** They work on this machine, whatever suite elsewhere a context names. */
export const ASKS_NOBODY: ReadonlySet<string> = new Set([
  ...["up", "dev", "serve", "down", "init", "doctor"],
  ...["context", "completion", "complete"],
]);
