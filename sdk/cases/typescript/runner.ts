// Plays the cases with the library for TypeScript: `npx node sdk/cases/typescript/runner.ts`, the suite's address in TOOLBUS_URL and a key in
// TOOLBUS_API_KEY.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { createToolbus, ToolbusError } from "toolbus";
import { parse } from "yaml";
import { functionsOf, type GivenFunction } from "./functions.ts";
import { type Play, plays } from "./plays.ts";

type Case = { name: string; expect: Record<string, unknown> } & Record<string, Play>;

const { functions, cases } = parse(readFileSync(process.argv[2] ?? "sdk/cases/cases.yaml", "utf8")) as {
  functions: Record<string, GivenFunction>;
  cases: Case[];
};
const toolbus = createToolbus();

/** Errors have a message that names what is wrong: the words that are expected stand in it. */
function isAs(field: string, seen: unknown, wanted: unknown): boolean {
  if ((field === "message" || field === "error") && typeof wanted === "string") return `${seen}`.includes(wanted);
  return isDeepStrictEqual(seen, wanted);
}

async function play({ name, expect, ...rest }: Case): Promise<string | undefined> {
  const kind = Object.keys(rest).find((key) => key in plays) ?? "";
  const given = rest[kind] as Play;
  const { tools, called } = functionsOf(functions, given.functions);
  const seen = await (
    plays[kind]?.(toolbus, given, { tools, called }) ?? Promise.reject(new Error(`no play ${kind}`))
  ).catch((error: unknown) => {
    if (!(error instanceof ToolbusError)) throw error;
    const { code, reason, message } = error;
    return { code, reason, message, ...("state" in error && { state: error.state }) };
  });
  const all: Record<string, unknown> = { ...seen, called };
  const wrong = Object.entries(expect).filter(([field, wanted]) => !isAs(field, all[field], wanted));
  if (wrong.length === 0) return undefined;
  return wrong
    .map(([field, wanted]) => `${field} is ${JSON.stringify(all[field])}, not ${JSON.stringify(wanted)}`)
    .join("; ");
}

for (const one of cases) {
  const fault = await play(one).catch((error: unknown) => String(error instanceof Error ? error.stack : error));
  console.log(fault === undefined ? `ok ${one.name}` : `FAIL ${one.name}: ${fault}`);
  if (fault !== undefined) process.exitCode = 1;
}
