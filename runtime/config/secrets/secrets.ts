import type { EnvironmentReader } from "../environment.ts";

/** A secret NAME is the variable TOOLBUS_SECRET_NAME of the service that uses it. */
export const SECRET_PREFIX = "TOOLBUS_SECRET_";

/** All secrets of a process, by name. */
export function secretsFromReader(reader: EnvironmentReader, meaning: string): Map<string, string> {
  return reader.prefixed(SECRET_PREFIX, { placeholder: "<NAME>", meaning });
}
