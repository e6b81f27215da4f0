import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { type StoredSession, StoredSessionSchema } from "#gen/toolbus/internal/session/v1/session_pb.ts";
import { type Session, SessionSchema } from "#gen/toolbus/session/v1/session_pb.ts";

/** A session with what only routers know of it. Clients see it as a `Session`, which it is. */
export type SessionRecord = Session & {
  /** The router that takes it through a switch or its closing; empty without one. */
  readonly holder: string;
  readonly beside?: StoredSession["$unknown"];
};

export type SessionRecordInit = MessageInitShape<typeof SessionSchema> & { readonly holder?: string };

export function sessionRecord(init: SessionRecordInit): SessionRecord {
  return { ...create(SessionSchema, init), holder: init.holder ?? "" };
}

export function encodeSession(record: SessionRecord): Uint8Array {
  const stored = create(StoredSessionSchema, { holder: record.holder });
  stored.session = record;
  if (record.beside !== undefined) stored.$unknown = record.beside;
  return toBinary(StoredSessionSchema, stored);
}

/** Throws for bytes that are no record of a session. */
export function decodeSession(bytes: Uint8Array): SessionRecord {
  const { session, holder, $unknown } = fromBinary(StoredSessionSchema, bytes);
  if (session === undefined) throw new TypeError("it holds no session");
  return { ...session, holder, ...($unknown && { beside: $unknown }) };
}
