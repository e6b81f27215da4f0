import type { Toolbus } from "toolbus";
import { ToolbusError } from "toolbus";
import { parse } from "yaml";
import { functionsOf, type GivenFunction } from "./functions.ts";
import { type Play, plays } from "./plays.ts";

type Case = { name: string; expect: Record<string, unknown> } & Record<string, Play>;

/** Errors have a message that names what is wrong: the words that are expected stand in it. */
function isAs(field: string, seen: unknown, wanted: unknown): boolean {
  if ((field === "message" || field === "error") && typeof wanted === "string") return `${seen}`.includes(wanted);
  return JSON.stringify(seen) === JSON.stringify(wanted);
}

/** Says how each case of the file goes; gives how many failed. */
export async function playCases(file: string, toolbus: Toolbus, say: (line: string) => void): Promise<number> {
  const { functions, cases } = parse(file) as { functions: Record<string, GivenFunction>; cases: Case[] };
  let failed = 0;
  for (const one of cases) {
    const fault = await play(one).catch((error: unknown) => String(error instanceof Error ? error.stack : error));
    say(fault === undefined ? `ok ${one.name}` : `FAIL ${one.name}: ${fault}`);
    if (fault !== undefined) failed += 1;
  }
  return failed;

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
}
