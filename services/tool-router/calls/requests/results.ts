import { hash } from "node:crypto";
import type { ReadResultRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import { requireOwner } from "#runtime/failure/session-owner.ts";
import { type ResultStore, sessionOfReference } from "#runtime/results/store/store.ts";
import type { SessionOwners } from "#runtime/rpc/access/session-owners.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import type { CallStore } from "../records/store.ts";
import { refuseCall, refuseUnknown } from "./open.ts";

export type Results = ReturnType<typeof createResults>;

type Part =
  | { case: "result"; value: { storedReference: string; size: bigint; sha256: Uint8Array } }
  | { case: "chunk"; value: { offset: bigint; data: Uint8Array } };

export interface ResultsParts {
  calls: Pick<CallStore, "read">;
  store: Pick<ResultStore, "find" | "read">;
  ownership: Pick<SessionOwners, "isOwnSession">;
}

/** A result as it is read. */
interface Whole {
  readonly storedReference: string;
  readonly bytes: number;
  readonly sha256: Uint8Array;
  from(offset: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

const chunkBytes = 128 * 1_024;

export function createResults({ calls, store, ownership }: ResultsParts) {
  async function ofCall(callId: string, caller: Caller): Promise<Whole> {
    const record = (await calls.read(callId)) ?? refuseUnknown(callId);
    if (!caller.isOperator) requireOwner(record, caller, `call ${callId}`);
    const { result } = record;
    if (result === undefined)
      return refuseCall("failed_precondition", callId, { reason: "CALL_IN_PROGRESS", why: "has no result yet" });
    return result.storedReference === "" ? wholeOf(result) : stored(result.storedReference);
  }

  /** A reference names its session; nobody learns from it whether another's session is there. */
  async function ofReference(reference: string, caller: Caller): Promise<Whole> {
    const sessionId = sessionOfReference(reference) ?? refuseGone(reference);
    if (!caller.isOperator && !(await ownership.isOwnSession(sessionId, caller))) refuseGone(reference);
    return stored(reference);
  }

  async function stored(reference: string): Promise<Whole> {
    const found = (await store.find(reference)) ?? refuseGone(reference);
    const { bytes, sha256 } = found;
    return { storedReference: reference, bytes, sha256, from: (offset, signal) => store.read(found, offset, signal) };
  }

  return {
    /** LOOP-8: streams a recorded or stored result to its owner and to operators. */
    async *read(request: ReadResultRequest, caller: Caller, signal: AbortSignal): AsyncGenerator<Part> {
      const { result, offset, limit } = request;
      if (result.case === undefined) return refuseField("result", "either call_id or stored_reference is required");
      const whole = await (result.case === "callId" ? ofCall(result.value, caller) : ofReference(result.value, caller));
      const { storedReference, bytes, sha256 } = whole;
      if (offset > BigInt(bytes))
        refuseField("offset", `${offset} is beyond the end of the result, which has ${bytes} bytes`);
      yield { case: "result", value: { storedReference, size: BigInt(bytes), sha256 } };
      let position = Number(offset);
      const end = limit === 0n ? bytes : Math.min(bytes, position + Number(limit));
      if (position === end) return;
      for await (const piece of whole.from(position, signal)) {
        const data = piece.subarray(0, end - position);
        yield { case: "chunk", value: { offset: BigInt(position), data } };
        position += data.length;
        if (position === end) return;
      }
    },
  };
}

/** One that its record holds. */
function wholeOf({ outputJson }: ToolResult): Whole {
  const text = Buffer.from(outputJson);
  return {
    storedReference: "",
    bytes: text.length,
    sha256: hash("sha256", text, "buffer"),
    async *from(offset) {
      for (let at = offset; at < text.length; at += chunkBytes) yield text.subarray(at, at + chunkBytes);
    },
  };
}

function refuseGone(reference: string): never {
  const message = `there is no result ${reference} of yours: it never was, or is no longer kept, since its session has no runs any more`;
  return refuse("not_found", message, { reason: "RESULT_NOT_FOUND", metadata: { stored_reference: reference } });
}
