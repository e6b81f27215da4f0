import type { EffectClass } from "../history/history.ts";

interface ScriptedCall {
  readonly tool: string;
}

/** What the model answers, turn by turn. Its words differ from request to request, as a model's do. */
export interface Script {
  readonly turns: readonly { readonly calls: readonly ScriptedCall[] }[];
}

export const classesByTool: ReadonlyMap<string, EffectClass> = new Map([
  ["look", "pure"],
  ["set", "idempotent"],
  ["send", "at_most_once"],
]);

/** A tool that the client of the run executes. */
export const functionTool = "ask";

export function scriptOf({ parks }: { parks: boolean }): Script {
  const acts = { calls: [...classesByTool.keys()].map((tool) => ({ tool })) };
  const asks = { calls: [{ tool: functionTool }, { tool: functionTool }] };
  return { turns: [acts, ...(parks ? [asks] : []), { calls: [] }] };
}

export const shortScript: Script = { turns: [{ calls: [] }] };

export function textOf(token: string, turn: number, request: number): string {
  const words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
  return `Request ${request} of ${token}, turn ${turn}: ${words.join(` and ${request} `)}.`;
}
