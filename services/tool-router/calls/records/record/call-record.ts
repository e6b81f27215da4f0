import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { AuditEventSchema } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { type StoredToolCall, StoredToolCallSchema } from "#gen/toolbus/internal/tool/v1/tool_call_pb.ts";
import { type ToolCall, ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { CallExecutionSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { UsageSchema } from "#gen/toolbus/tool/v1/usage_pb.ts";
import type { Answer, CallUse } from "../../answers/answer.ts";

type Fields = Omit<StoredToolCall, "$typeName" | "$unknown" | "call" | Exclude<keyof CallUse, "execution">>;

/** A recorded call with what only routers know of it. Clients see it as a `ToolCall`, which it is. */
export type CallRecord = Omit<ToolCall, "result"> &
  Fields & { result?: Answer | undefined; readonly beside?: StoredToolCall["$unknown"] };

export type CallRecordInit = Partial<Fields> & MessageInitShape<typeof ToolCallSchema>;

export function callRecord(init: CallRecordInit): CallRecord {
  const stored = copyFields(init, create(StoredToolCallSchema));
  return { ...copyFields(stored, {}), ...create(ToolCallSchema, init) };
}

export function encodeCall(record: CallRecord): Uint8Array {
  const { usage, callCount, endsRun, execution = record.execution } = record.result ?? {};
  const stored = copyFields(record, create(StoredToolCallSchema));
  if (usage) stored.usage = create(UsageSchema, usage);
  if (callCount) stored.callCount = callCount;
  if (endsRun) stored.endsRun = endsRun;
  if (execution) stored.execution = create(CallExecutionSchema, execution);
  stored.call = record;
  if (record.beside !== undefined) stored.$unknown = record.beside;
  return toBinary(StoredToolCallSchema, stored);
}

/** Throws for bytes that are no record of a call. */
export function decodeCall(bytes: Uint8Array): CallRecord {
  const stored = fromBinary(StoredToolCallSchema, bytes);
  if (stored.call === undefined) throw new TypeError("it holds no call");
  const { usage, callCount, endsRun, execution } = stored;
  const { result } = stored.call;
  return {
    ...copyFields(stored, {}),
    ...stored.call,
    ...(result && {
      result: { ...result, callCount, endsRun, ...(usage && { usage }), ...(execution && { execution }) },
    }),
    ...(stored.$unknown && { beside: stored.$unknown }),
  };
}

const FIELDS = [
  ...(["waitExpireTime", "deliveryId", "watcherPrincipal", "calledAs", "canceledBy"] as const),
  ...(["submissionId", "submissionSha256", "undelivered", "inputRequired", "inputEpoch", "execution"] as const),
  ...(["resumable"] as const),
] satisfies (keyof Fields)[];

/** Gives the target, which has no undefined field then. Each call is encoded and decoded several times. */
function copyFields<T extends object>(from: Partial<Fields>, target: T): T & Fields {
  const to: Record<string, unknown> = target as Record<string, unknown>;
  for (const field of FIELDS) {
    const value = from[field];
    if (value !== undefined) to[field] = value;
  }
  return target as T & Fields;
}

/** What an audit event says of the call that it is about. */
export function auditedFacts(record: CallRecord): MessageInitShape<typeof AuditEventSchema> {
  const { agent, sessionId, runId, callId, tool } = record;
  return { agent, sessionId, runId, callId, tool };
}
