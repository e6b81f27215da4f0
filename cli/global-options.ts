import type { Command } from "commander";

export const defaultUrl = "http://127.0.0.1:7480";

/** The options that every command knows. */
export interface GlobalOptions {
  url: string;
  apiKey?: string;
  json?: boolean;
}

export function globalOptionsOf(command: Command): GlobalOptions {
  return command.optsWithGlobals<GlobalOptions>();
}
