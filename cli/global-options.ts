import { type Command, InvalidArgumentError, Option } from "commander";
import { stateDirectory } from "./project/project.ts";
import { keyOfSuiteAt, type RunningSuite, suiteIn } from "./suite/keys/key.ts";

export const defaultUrl = "http://127.0.0.1:7480";

/** The options that every command knows. */
export interface GlobalOptions {
  url: string;
  apiKey?: string | undefined;
  json?: boolean;
}

/** That of this project, from its start until it has stopped. */
export function ownSuite(): RunningSuite | undefined {
  return suiteIn(ownDirectory());
}

/** Without a key of its own a command takes that of the suite that runs at the address, if it lies here. */
export function globalOptionsOf(command: Command): GlobalOptions {
  const options = command.optsWithGlobals<GlobalOptions>();
  const apiKey = options.apiKey ?? keyOfSuiteAt(options.url, ownDirectory());
  return apiKey === undefined ? options : { ...options, apiKey };
}

/** `--directory` of the commands that start and stop a suite. */
export function directoryOption(meaning: string): Option {
  return new Option("--directory <path>", meaning)
    .env("TOOLBUS_DIRECTORY")
    .argParser(named)
    .default(stateDirectory(), "`.toolbus` of the project");
}

/** An empty one would be the working directory. */
function named(directory: string): string {
  if (directory.trim() === "") throw new InvalidArgumentError("it is empty: name a directory, or leave it out");
  return directory;
}

function ownDirectory(): string {
  return process.env.TOOLBUS_DIRECTORY ?? stateDirectory();
}

/** What is wrong with a key, without the key; undefined for what a header can carry. */
export function faultOfKey(text: string): string | undefined {
  if (text.trim() === "") return "it is empty: give a key, or leave it out";
  if (/^[\x21-\x7e]+$/.test(text)) return undefined;
  return "a key is one word of ASCII characters: it holds a space, a line break or something else";
}
