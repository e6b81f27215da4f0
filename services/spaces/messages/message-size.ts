import { clone } from "@bufbuild/protobuf";
import { type ToolMessage, ToolMessageSchema } from "#gen/toolbus/space/v1/space_pb.ts";

/*
 * A call that is shown holds arguments, schema and result, and has to fit into one message of 1 MiB also when the result
 * comes: a call whose end cannot be shown would run for ever in the eyes of people. So each has its share. Results come from the
 * router, which shortens them to 512 KiB at most; arguments come from runs, too, while a model still writes them.
 */

const { byteLength: bytesOf } = Buffer;
const kib = 1_024;
const mostArgumentsBytes = 256 * kib;
const mostSchemaBytes = 64 * kib;

/** The call without what is larger than its share. */
export function fitted(tool: ToolMessage): ToolMessage {
  const { argumentsJson, outputSchemaJson } = tool;
  const areArgumentsLarge = bytesOf(argumentsJson) > mostArgumentsBytes;
  const isSchemaLarge = bytesOf(outputSchemaJson) > mostSchemaBytes;
  if (!areArgumentsLarge && !isSchemaLarge) return tool;
  const shown = clone(ToolMessageSchema, tool);
  if (areArgumentsLarge) shown.argumentsJson = JSON.stringify({ truncated: true, bytes: bytesOf(argumentsJson) });
  if (isSchemaLarge) shown.outputSchemaJson = "";
  return shown;
}
