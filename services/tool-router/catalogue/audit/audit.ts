import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AuditEventSchema } from "#gen/toolbus/audit/v1/audit_pb.ts";

/** Puts a decision on the trail (ORCH-11), as one on a principal's behalf. Never waits and never fails: a call does not depend on it. */
export type Audit = (event: MessageInitShape<typeof AuditEventSchema>, principal?: string) => void;
