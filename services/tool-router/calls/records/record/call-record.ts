import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { AuditEventSchema } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { type StoredToolCall, StoredToolCallSchema } from "#gen/toolbus/internal/tool/v1/tool_call_pb.ts";
import { type ToolCall, ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import type { Answer, CallUse } from "../../answers/answer.ts";

type Fields = Omit<StoredToolCall, "$typeName" | "$unknown" | "call" | keyof CallUse>;

/** A recorded call with what only routers know of it. Clients see it as a `ToolCall`, which it is. */
export type CallRecord = Omit<ToolCall, "result"> &
  Fields & { result?: Answer | undefined; readonly beside?: StoredToolCall["$unknown"] };

export type CallRecordInit = Partial<Fields> & MessageInitShape<typeof ToolCallSchema>;

export function callRecord(init: CallRecordInit): CallRecord {
  return { ...fieldsOf(create(StoredToolCallSchema, fieldsOf(init))), ...create(ToolCallSchema, init) };
}

export function encodeCall(record: CallRecord): Uint8Array {
  const { usage, callCount, endsRun } = record.result ?? {};
  const use = { ...(usage && { usage }), ...(callCount && { callCount }), ...(endsRun && { endsRun }) };
  const stored = create(StoredToolCallSchema, { ...fieldsOf(record), ...use });
  stored.call = record;
  if (record.beside !== undefined) stored.$unknown = record.beside;
  return toBinary(StoredToolCallSchema, stored);
}

/** Throws for bytes that are no record of a call. */
export function decodeCall(bytes: Uint8Array): CallRecord {
  const stored = fromBinary(StoredToolCallSchema, bytes);
  if (stored.call === undefined) throw new TypeError("it holds no call");
  const { usage, callCount, endsRun } = stored;
  const { result, ...call } = stored.call;
  return {
    ...fieldsOf(stored),
    ...call,
    ...(result && { result: { ...result, callCount, endsRun, ...(usage && { usage }) } }),
    ...(stored.$unknown && { beside: stored.$unknown }),
  };
}

function fieldsOf<F extends Partial<Fields>>(record: F): Pick<F, keyof Fields> {
  const { waitExpireTime, deliveryId, watcherPrincipal, calledAs, canceledBy } = record;
  const { submissionId, submissionSha256, undelivered, inputRequired, inputEpoch } = record;
  const fields = {
    ...{ waitExpireTime, deliveryId, watcherPrincipal, calledAs, canceledBy },
    ...{ submissionId, submissionSha256, undelivered, inputRequired, inputEpoch },
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Pick<F, keyof Fields>;
}

/** What an audit event says of the call that it is about. */
export function auditedFacts(record: CallRecord): MessageInitShape<typeof AuditEventSchema> {
  const { agent, sessionId, runId, callId, tool } = record;
  return { agent, sessionId, runId, callId, tool };
}
