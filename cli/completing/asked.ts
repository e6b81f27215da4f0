import type { Command } from "commander";

/** What of a suite a word may be that is being written. */
export type Asked =
  | { kind: "agents" | "sessions" }
  /** Those of an agent, if one is named before. */
  | { kind: "tools"; agent?: string };

/** What the last of the words would be, if the suite knows it; undefined for all else. */
export function askedBy(program: Command, words: readonly string[]): Asked | undefined {
  const before = words.slice(0, -1);
  const { command, positionals, agent, open } = read(program, before);
  if (open !== undefined) return askedFrom(open.replace(/^-+/, ""), undefined);
  if (words.at(-1)?.startsWith("-")) return undefined;
  const { registeredArguments } = command;
  const last = registeredArguments.at(-1);
  const argument = registeredArguments[positionals.length] ?? (last?.variadic ? last : undefined);
  if (argument === undefined) return undefined;
  const named = positionals[registeredArguments.findIndex((one) => one.name() === "agent")];
  return askedFrom(nameIn(command, argument.name()), agent ?? named);
}

function askedFrom(name: string, agent: string | undefined): Asked | undefined {
  if (name === "agent" || name === "session") return { kind: `${name}s` };
  if (name !== "tool" && name !== "tools") return undefined;
  return { kind: "tools", ...(agent !== undefined && { agent }) };
}

/** `agents show NAME` and `sessions close ID` say by their group what they mean. */
function nameIn(command: Command, argument: string): string {
  const group = command.parent?.name();
  if (argument === "name" && group === "agents") return "agent";
  if (argument === "id" && group === "sessions") return "session";
  return argument;
}

/** The command that the words lead to, its arguments, and the option whose value comes next. */
function read(program: Command, words: readonly string[]) {
  let command = program;
  let open: string | undefined;
  let agent: string | undefined;
  const positionals: string[] = [];
  for (const word of words) {
    if (open !== undefined) {
      if (open === "--agent") agent = word;
      open = undefined;
    } else if (word.startsWith("-")) {
      const known = [...command.options, ...program.options];
      const option = known.find(({ short, long }) => word === short || word === long);
      if (option?.required || option?.optional) open = option.long ?? word;
    } else {
      const inner = positionals.length === 0 ? command.commands.find((one) => one.name() === word) : undefined;
      if (inner === undefined) positionals.push(word);
      else command = inner;
    }
  }
  return { command, positionals, agent, open };
}
