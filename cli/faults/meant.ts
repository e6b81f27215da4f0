import type { Command } from "commander";
import { nearest } from "#runtime/failure/spelling/nearest.ts";

/** In the words of commander, which suggests commands and options by itself; undefined where no name is spelled like the word. */
export function meantBy(word: string, names: readonly string[]): string | undefined {
  const candidates = names.map((name) => ({ name, spellings: [name] }));
  const [first, ...others] = nearest(word, candidates);
  if (first === undefined) return undefined;
  return others.length === 0 ? `(Did you mean ${first}?)` : `(Did you mean one of ${[first, ...others].join(", ")}?)`;
}

/** Refuses a word that is no subcommand, where commander would take it for an argument of the default one. */
export function refuseUnknownSubcommands(command: Command): void {
  command.hook("preSubcommand", (group, chosen) => {
    const [word] = group.args;
    if (word === undefined || word.startsWith("-") || chosen.registeredArguments.length > 0) return;
    if (word === chosen.name() || chosen.aliases().includes(word)) return;
    const names = group.commands.map((one) => one.name());
    const meant = meantBy(word, names) ?? `It has ${names.join(", ")}.`;
    group.error(`error: unknown command '${word}' of toolbus ${group.name()}\n${meant}`);
  });
}

const WRONG_CHOICE = /(?:value|argument) '([^']*)' is invalid[^\n]*\. Allowed choices are ([^\n]+)\.\n$/;

/** What commander says of a value that is none of a list, with the one that may have been meant. */
export function withMeantChoice(text: string): string {
  const [, word = "", names = ""] = WRONG_CHOICE.exec(text) ?? [];
  const meant = word === "" ? undefined : meantBy(word, names.split(", "));
  return meant === undefined ? text : `${text}${meant}\n`;
}
