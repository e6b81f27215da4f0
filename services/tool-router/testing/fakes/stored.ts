import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { StoredToolCallSchema } from "#gen/toolbus/internal/tool/v1/tool_call_pb.ts";
import { ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { callRecord, encodeCall } from "../../calls/records/record/call-record.ts";

/** The record of a call as it is stored, for tests that leave what a router left; `inside` is what only routers know. */
export function storedCall(call: JsonValue, inside: JsonValue = {}): Uint8Array {
  const { $typeName: _, ...fields } = fromJson(StoredToolCallSchema, inside);
  return encodeCall(callRecord({ ...fields, ...fromJson(ToolCallSchema, call) }));
}
