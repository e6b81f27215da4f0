import type { Command } from "commander";
import { keyOfSuiteAt } from "./suite/key.ts";

export const defaultUrl = "http://127.0.0.1:7480";
export const defaultDirectory = ".toolbus";

/** The options that every command knows. */
export interface GlobalOptions {
  url: string;
  apiKey?: string | undefined;
  json?: boolean;
}

/** Without a key of its own a command takes that of the suite that runs at the address, if it lies here. */
export function globalOptionsOf(command: Command): GlobalOptions {
  const options = command.optsWithGlobals<GlobalOptions>();
  const apiKey = options.apiKey ?? keyOfSuiteAt(options.url, process.env.TOOLBUS_DIRECTORY || defaultDirectory);
  return apiKey === undefined ? options : { ...options, apiKey };
}
