import { createHash } from "node:crypto";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";

/*
 * A record holds arguments, schema and result, each a JSON text that is escaped once more in it, and has to fit into one
 * message of 1 MiB also when the result comes, which is after the effect. So each has its share, measured as it is written;
 * the rest, identities and times, is small.
 */

const kib = 1_024;
const MAX_ARGUMENTS_BYTES = 256 * kib;
const MAX_SCHEMA_BYTES = 64 * kib;

/** The share of the result; what is shortened to fit takes no more than that either. */
const MAX_RECORDED_RESULT_BYTES = 512 * kib;

/** What a JSON text takes inside of another. */
export function writtenBytes(json: string): number {
  return Buffer.byteLength(JSON.stringify(json));
}

/** What one character takes there at most, as an escape. */
const WRITTEN_CHARACTER_BYTES = 6;

/** Most are so short, and some so long, that they need not be written to be measured. */
function fits(json: string, maxBytes: number): boolean {
  if (json.length * WRITTEN_CHARACTER_BYTES + 2 <= maxBytes) return true;
  return json.length <= maxBytes && writtenBytes(json) <= maxBytes;
}

/** Larger arguments go to their tool, and to the store of results; the record and the space hold a digest of them. */
export function recordedArguments(argumentsJson: string): string {
  if (fitsAsArguments(argumentsJson)) return argumentsJson;
  const sha256 = createHash("sha256").update(argumentsJson).digest("hex");
  return JSON.stringify({ truncated: true, bytes: Buffer.byteLength(argumentsJson), sha256 });
}

/** Why a person or a watcher cannot be given the arguments of a call: they see only its record. */
export function faultOfHandedArguments(argumentsJson: string): string | undefined {
  if (fitsAsArguments(argumentsJson)) return undefined;
  const bytes = Buffer.byteLength(argumentsJson);
  const written = writtenBytes(argumentsJson);
  return `they have ${bytes} bytes, ${written} as they are recorded, where a tool that is answered from outside is handed at most ${MAX_ARGUMENTS_BYTES}`;
}

export function fitsAsArguments(argumentsJson: string): boolean {
  return fits(argumentsJson, MAX_ARGUMENTS_BYTES);
}

/** A larger schema is not recorded: results that come from outside are then not checked against it. */
export function recordedSchema(outputSchemaJson: string): string {
  return fits(outputSchemaJson, MAX_SCHEMA_BYTES) ? outputSchemaJson : "";
}

/** Whether the result can be recorded as it is. */
export function fitsRecord({ outputJson, storedReference }: ToolResult): boolean {
  return storedReference !== "" || fits(outputJson, MAX_RECORDED_RESULT_BYTES);
}
