import { randomUUID } from "node:crypto";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import type { CreateCallKeyRequest } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Audit } from "#runtime/audit/trail.ts";
import type { SignCallKey } from "#runtime/rpc/access/tokens/call-keys.ts";
import type { Caller, CallKey } from "#runtime/rpc/identity.ts";
import type { Clock } from "#runtime/time/clock.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { auditedFacts } from "../records/record/call-record.ts";
import type { CallStore } from "../records/store.ts";
import type { Answerers } from "./answerers.ts";
import { refuseUnknown, refuseUnlessOpen } from "./open.ts";

export type CallKeys = ReturnType<typeof createCallKeys>;

export interface CallKeysParts {
  readonly store: Pick<CallStore, "read">;
  readonly answerers: Pick<Answerers, "require">;
  readonly sign: SignCallKey;
  readonly audit: Audit;
  readonly clock: Clock;
}

const HOUR_MS = 3_600_000;

export function createCallKeys({ store, answerers, sign, audit, clock }: CallKeysParts) {
  return {
    /** Makes a key of one call that waits for a person, for whoever may answer it: `#runtime/rpc/access/tokens/call-keys.ts`. */
    async create({ callId, lifetime }: Pick<CreateCallKeyRequest, "callId" | "lifetime">, caller: Caller) {
      const record = (await store.read(callId)) ?? refuseUnknown(callId);
      await answerers.require(record, caller);
      refuseUnlessOpen(record, clock.now());
      const { principal = record.principal } = caller;
      const wantedMs = clock.now() + (msFromDuration(lifetime) ?? HOUR_MS);
      const expireMs = Math.min(wantedMs, record.expireTime ? timestampMs(record.expireTime) : wantedMs);
      const id = randomUUID();
      const key = await sign({ principal, callId, id, expireMs });
      const message = `${principal} made call key ${id}, until ${new Date(expireMs).toISOString()}`;
      const facts = auditedFacts(record);
      audit({ kind: AuditKind.KEY_CREATED, ...facts, rule: ruleOf({ id }), message }, record.principal);
      return { key, keyId: id, expireTime: timestampFromMs(expireMs) };
    },
  };
}

/** As the audit trail names a key. */
export function ruleOf({ id }: Pick<CallKey, "id">): string {
  return `call key ${id}`;
}
