import { hash } from "node:crypto";

/*
 * A record holds arguments, schema and result, and has to fit into one message of 1 MiB also when the result comes, which is
 * after the effect. So each has its share; the rest, identities and times, is small. The share of the result is at most
 * 512 KiB (TOOLBUS_MAX_RESULT_BYTES), beside it come the content and the `_meta` that a provider gave (content.ts).
 * A space shows the call in a message of that size, too.
 */

const kib = 1_024;
const MAX_ARGUMENTS_BYTES = 256 * kib;
const MAX_SCHEMA_BYTES = 64 * kib;

/** Larger arguments go to their tool, and to the store of results; the record and the space hold a digest of them. */
export function recordedArguments(argumentsJson: string): string {
  return fitsAsArguments(argumentsJson) ? argumentsJson : digestOfArguments(argumentsJson);
}

export function digestOfArguments(argumentsJson: string): string {
  const sha256 = hash("sha256", argumentsJson, "hex");
  return JSON.stringify({ truncated: true, bytes: Buffer.byteLength(argumentsJson), sha256 });
}

/** Why a person or a watcher cannot be given the arguments of a call: they see only its record. */
export function faultOfHandedArguments(argumentsJson: string): string | undefined {
  if (fitsAsArguments(argumentsJson)) return undefined;
  const bytes = Buffer.byteLength(argumentsJson);
  return `they have ${bytes} bytes, where a tool that is answered from outside is handed at most ${MAX_ARGUMENTS_BYTES}`;
}

export function fitsAsArguments(argumentsJson: string): boolean {
  return Buffer.byteLength(argumentsJson) <= MAX_ARGUMENTS_BYTES;
}

/** A larger schema is not recorded: results that come from outside are then not checked against it. */
export function recordedSchema(outputSchemaJson: string): string {
  return Buffer.byteLength(outputSchemaJson) <= MAX_SCHEMA_BYTES ? outputSchemaJson : "";
}
