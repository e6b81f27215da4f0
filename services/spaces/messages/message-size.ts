import { clone, create } from "@bufbuild/protobuf";
import { type ToolMessage, ToolMessageSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { shortenedJson } from "#runtime/results/shortened.ts";

/*
 * A call that is shown holds arguments, schema and result, and has to fit into one message of 1 MiB also when the result
 * comes: a call whose end cannot be shown would run for ever in the eyes of people. So each has its share.
 */

const { byteLength: bytesOf } = Buffer;
const kib = 1_024;
const mostArgumentsBytes = 256 * kib;
const mostSchemaBytes = 64 * kib;
const mostResultBytes = 512 * kib;
const beginningBytes = 16 * kib;

/** Keeps a whole result of a session, and gives the reference under which it can be read. */
export type StoreResult = (sessionId: string, outputJson: string) => Promise<string>;

/** A call as a session's agent made it. */
export type Fitting = (tool: ToolMessage, sessionId: string) => Promise<ToolMessage>;

/** What is larger than its share is shown shortened; of a result the whole is kept under the reference that is shown. */
export function createFitting(store: StoreResult): Fitting {
  return async (tool, sessionId) => {
    const { argumentsJson, outputSchemaJson, result } = tool;
    const isFit = bytesOf(argumentsJson) <= mostArgumentsBytes && bytesOf(outputSchemaJson) <= mostSchemaBytes;
    if (isFit && (result === undefined || bytesOf(result.outputJson) <= mostResultBytes)) return tool;
    const fitted = clone(ToolMessageSchema, tool);
    if (bytesOf(argumentsJson) > mostArgumentsBytes) {
      fitted.argumentsJson = JSON.stringify({ truncated: true, bytes: bytesOf(argumentsJson) });
    }
    if (bytesOf(outputSchemaJson) > mostSchemaBytes) fitted.outputSchemaJson = "";
    if (result && bytesOf(result.outputJson) > mostResultBytes) {
      fitted.result = await shortened(result, (outputJson) => store(sessionId, outputJson));
    }
    return fitted;
  };
}

async function shortened(
  { outputJson, isError, storedReference: known }: ToolResult,
  store: (outputJson: string) => Promise<string>,
) {
  const storedReference = known || (await store(outputJson));
  const shown = shortenedJson({ outputJson, isError, storedReference, beginningBytes });
  return create(ToolResultSchema, { outputJson: shown, isError, storedReference });
}
