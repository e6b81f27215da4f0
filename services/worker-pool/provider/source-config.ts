import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { refuseRequest } from "#runtime/failure/failure.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { isModuleFileName, isToolFileName } from "../files/tool-file.ts";

/** What an agent's entry of a worker says, parsed. */
export interface SourceConfig {
  /** The file that it names, or those that it may mean: the first that is there counts. */
  files: readonly string[];
  /** Names of the secrets that its functions are given. */
  secrets: readonly string[];
  config: JsonObject;
}

/** Of Python files, which come first, and of hosted modules. */
const ENDINGS = ["py", "ts", "mts", "js", "mjs"];
const FIELDS = new Set(["file", "secrets", "config"]);

/** Throws `invalid_argument`, which names the source and the field. */
export function parseSourceConfig(source: string, given: JsonObject = {}): SourceConfig {
  const fault = (words: string) =>
    refuseRequest(`source "${source}": ${words}`, { field: "source.config", message: words });
  for (const field of Object.keys(given)) {
    if (!FIELDS.has(field)) fault(`unknown field "${field}"; known are file, secrets, config`);
  }
  const { file, secrets = [], config = {} } = given;
  if (file !== undefined && !isFileName(file)) {
    fault(
      `file must be the name of a Python file in the directory of workers or of a module in that of hosted modules, not ${JSON.stringify(file)}`,
    );
  }
  const files = file === undefined ? ENDINGS.map((ending) => `${source}.${ending}`) : [file as string];
  if (!isListOfNames(secrets)) fault("secrets must be a list of names");
  if (!isObject(config)) fault("config must be an object");
  return { files, secrets: secrets as string[], config: config as JsonObject };
}

function isFileName(name: JsonValue): boolean {
  return typeof name === "string" && (isToolFileName(name) || isModuleFileName(name));
}

function isListOfNames(value: JsonValue): boolean {
  return Array.isArray(value) && value.every((name) => typeof name === "string" && name !== "");
}
