import type { CallOptions, Client } from "@connectrpc/connect";
import type { ContentBlock } from "@modelcontextprotocol/server";
import type { ToolCall } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";

export type StoredCalls = Pick<
  Client<typeof ToolCallService>,
  "readResult" | "getToolCall" | "cancelToolCall" | "submitToolResult" | "listToolCalls"
>;

/** Which result: one that is stored by itself, or that of a recorded call. It is JSON, or of the type that its tool said. */
export type ResultReference = { mimeType?: string } & (
  | { case: "storedReference"; value: string }
  | { case: "callId"; value: string }
);

const STORED = "toolbus://results/";
const OF_CALL = "toolbus://calls/";
/** Nobody keeps the type of what is stored. */
const TYPE = "?type=";

export function uriOfResult({ case: kind, value, mimeType }: ResultReference): string {
  const type = mimeType === undefined ? "" : TYPE + encodeURIComponent(mimeType);
  return `${kind === "callId" ? OF_CALL : STORED}${encodeURIComponent(value)}${type}`;
}

export function referenceFromUri(uri: string): ResultReference | undefined {
  const kind = uri.startsWith(STORED) ? "storedReference" : uri.startsWith(OF_CALL) ? "callId" : undefined;
  if (kind === undefined) return undefined;
  try {
    const said = uri.slice((kind === "callId" ? OF_CALL : STORED).length).split(TYPE, 2);
    const [value = "", mimeType] = said.map(decodeURIComponent);
    return { case: kind, value, ...(mimeType !== undefined && { mimeType }) };
  } catch {
    return undefined;
  }
}

export function linkTo(reference: ResultReference): ContentBlock {
  const { mimeType } = reference;
  const named =
    mimeType === undefined ? { name: "result.json", mimeType: "application/json" } : { name: "result", mimeType };
  const description = "The whole, of which this is the beginning.";
  return { type: "resource_link", uri: uriOfResult(reference), ...named, description };
}

/** Results of one's own calls that are kept, as resources. */
export interface StoredResults {
  /** The whole, or the first of its bytes. */
  readBytes(reference: ResultReference, limit?: number): Promise<Uint8Array>;
  /** Whether the call's result can be read later: that of a call that may be repeated is not kept. */
  isKept(callId: string): Promise<boolean>;
}

export function createStoredResults(calls: StoredCalls, options: CallOptions, maxBytes: number): StoredResults {
  return {
    async readBytes({ mimeType: _, ...result }, limit = 0) {
      const chunks: Uint8Array[] = [];
      for await (const { part } of calls.readResult({ result, limit: BigInt(limit) }, options)) {
        if (part.case === "result" && limit === 0 && part.value.size > BigInt(maxBytes)) {
          const text = `the result has ${part.value.size} bytes, more than the ${maxBytes} of a message`;
          refuse("resource_exhausted", text, { reason: "MESSAGE_TOO_LARGE" });
        }
        if (part.case === "chunk") chunks.push(part.value.data);
      }
      return Buffer.concat(chunks);
    },
    async isKept(callId) {
      const read = calls.getToolCall({ callId }, options);
      return read.then(
        ({ call }) => call?.result !== undefined,
        () => false, // the whole is sent instead
      );
    },
  };
}

/** A call's arguments as they were given; undefined where no more than their digest is kept. */
export async function recordedArguments(
  { argumentsJson, argumentsReference }: Pick<ToolCall, "argumentsJson" | "argumentsReference">,
  results: Pick<StoredResults, "readBytes">,
): Promise<string | undefined> {
  if (argumentsReference === "") return isDigest(argumentsJson) ? undefined : argumentsJson;
  return Buffer.from(await results.readBytes({ case: "storedReference", value: argumentsReference })).toString();
}

/** What is recorded of arguments that are too large for a record. */
function isDigest(argumentsJson: string): boolean {
  return argumentsJson.startsWith('{"truncated":true,"bytes":');
}
