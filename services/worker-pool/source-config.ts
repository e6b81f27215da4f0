import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { refuse } from "#runtime/failure/failure.ts";
import { isToolFileName } from "./files/tool-file.ts";

/** What an agent's entry of a worker says, parsed. */
export interface SourceConfig {
  source: string;
  file: string;
  /** Names of the secrets that its functions are given. */
  secrets: readonly string[];
  config: JsonObject;
}

const FIELDS = new Set(["file", "secrets", "config"]);

/** Throws `invalid_argument`, which names the source and the field. */
export function parseSourceConfig(source: string, given: JsonObject = {}): SourceConfig {
  const fault = (words: string) => refuse("invalid_argument", `source "${source}": ${words}`);
  for (const field of Object.keys(given)) {
    if (!FIELDS.has(field)) fault(`unknown field "${field}"; known are file, secrets, config`);
  }
  const { file = `${source}.py`, secrets = [], config = {} } = given;
  if (typeof file !== "string" || !isToolFileName(file)) {
    fault(`file must be the name of a Python file in the directory of workers, not ${JSON.stringify(file)}`);
  }
  if (!isListOfNames(secrets)) fault("secrets must be a list of names");
  if (!isObject(config)) fault("config must be an object");
  return { source, file: file as string, secrets: secrets as string[], config: config as JsonObject };
}

function isListOfNames(value: JsonValue): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === "string" && name !== "");
}

function isObject(value: JsonValue): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
