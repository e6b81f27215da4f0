import { type Tool, tool } from "toolbus";
import { delay } from "#runtime/time/delay.ts";

/** As the file of cases has it. */
export interface GivenFunction {
  readonly description?: string;
  readonly input?: object;
  readonly takesMs?: number;
  readonly returns?: object;
  readonly error?: string;
}

/** The functions of a case, and how often each ran. */
export interface Functions {
  readonly tools: readonly Tool[];
  readonly called: Readonly<Record<string, number>>;
}

export function functionsOf(given: Readonly<Record<string, GivenFunction>>, names: readonly string[] = []): Functions {
  const called: Record<string, number> = {};
  const tools = names.map((name) => {
    const { description = "", input, takesMs = 0, returns, error } = given[name] ?? {};
    return tool<object>({
      name,
      description,
      ...(input && { input }),
      async run(args, { signal }) {
        called[name] = (called[name] ?? 0) + 1;
        await delay(takesMs, signal);
        if (error !== undefined) throw new Error(error);
        return { ...args, ...returns };
      },
    });
  });
  return { tools, called };
}
