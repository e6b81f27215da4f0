import { fromBinary, fromJson, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { type Session, SessionSchema } from "#gen/toolbus/session/v1/session_pb.ts";
import { type ToolCall, ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";

/** The record of a call as it is stored, for tests that leave what a router left. */
export function storedCall(record: JsonValue | ToolCall): Uint8Array {
  const isMessage = typeof record === "object" && record !== null && "$typeName" in record;
  return toBinary(ToolCallSchema, isMessage ? (record as ToolCall) : fromJson(ToolCallSchema, record as JsonValue));
}

export function callFromStored(bytes: Uint8Array): ToolCall {
  return fromBinary(ToolCallSchema, bytes);
}

export function storedSession(session: Session): Uint8Array {
  return toBinary(SessionSchema, session);
}

export function sessionFromStored(bytes: Uint8Array): Session {
  return fromBinary(SessionSchema, bytes);
}
