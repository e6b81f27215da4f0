import { parseArgs } from "node:util";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { FaultOption } from "./options.ts";

type Options = Readonly<Record<string, FaultOption<unknown>>>;
type Values<Given extends Options> = { [Name in keyof Given]: ReturnType<Given[Name]["read"]> };

interface FaultCommand<Given extends Options> {
  readonly name: string;
  /** What happens, and what is judged. */
  readonly about: string;
  readonly options: Given;
  /** What is to be known beside the options. */
  readonly more?: string;
  /** Gives whether it went as it should. Throws a `Misuse` before it begins anything. */
  readonly run: (values: Values<Given> & { readonly json: boolean }) => Promise<boolean>;
}

/** What is wrong with the options, where no single one is to blame. */
export class Misuse extends Error {}

/** Takes its own words of the command line, and gives the exit code: 0 for no violation, 1 for some, 2 for a misuse. */
export function faultCommand<Given extends Options>(command: FaultCommand<Given>): (args: string[]) => Promise<number> {
  const help = helpOf(command);
  return async (args) => {
    try {
      const values = read(command.options, args);
      if (values.help) console.log(help);
      return values.help || (await command.run(values)) ? 0 : 1;
    } catch (error) {
      if (!(error instanceof Misuse)) throw error;
      console.error(`${error.message}\n${help}`);
      return 2;
    }
  };
}

function read<Given extends Options>(options: Given, args: string[]) {
  const text = { type: "string", multiple: true } as const;
  const flag = { type: "boolean", default: false } as const;
  const texts = Object.fromEntries(Object.keys(options).map((name) => [name, text]));
  const { json, help, ...given } = orMisuse("", () =>
    parseArgs({ args, options: { ...texts, json: flag, help: flag } }),
  ).values;
  const lists: Readonly<Record<string, unknown>> = given;
  const values = Object.entries(options).map(([name, { read }]) => [
    name,
    orMisuse(`--${name} `, () => read((lists[name] ?? []) as string[])),
  ]);
  return { ...(Object.fromEntries(values) as Values<Given>), json, help };
}

function orMisuse<Value>(option: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw new Misuse(`${option}${messageFromUnknown(error)}`);
  }
}

function helpOf({ name, about, options, more }: Omit<FaultCommand<Options>, "run">): string {
  const lines = Object.entries(options).map(([key, { placeholder, means }]) => [`--${key} ${placeholder}`, means]);
  const all = { ...Object.fromEntries(lines), "--json": "what came of it as JSON", "--help": "this text" };
  const parts = [
    `usage: npm run faults -- ${name} [options]`,
    about,
    listOf(all),
    ...(more === undefined ? [] : [more]),
  ];
  return parts.join("\n\n");
}

/** A line for each name, with its meaning. */
export function listOf(meanings: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(meanings).map((name) => name.length));
  return Object.entries(meanings)
    .map(([name, meaning]) => `  ${name.padEnd(width)}  ${meaning}`)
    .join("\n");
}
