import { fromBinary, toBinary, toJson } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { expect, test } from "vitest";
import { StoredSessionSchema } from "#gen/toolbus/internal/session/v1/session_pb.ts";
import { StoredToolCallSchema } from "#gen/toolbus/internal/tool/v1/tool_call_pb.ts";
import { SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { ToolCallSchema } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { openBucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { lastOf } from "#runtime/bus/streams/append/append.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { callRecord, decodeCall, encodeCall } from "../calls/records/record/call-record.ts";
import { SessionChanges } from "../sessions/session-changes.ts";
import { decodeSession, encodeSession, sessionRecord } from "../sessions/session-record.ts";
import { followSessions } from "./sessions/sessions.ts";

const codec = { encode: encodeSession, decode: decodeSession };
const place = { bucket: "toolbus_sessions", prefix: "", codec } as const;
const garbage = Uint8Array.of(0xff, 0xff, 0xff);
const session = (id: string) => sessionRecord({ id, agent: "a", state: SessionState.ACTIVE, holder: "h" });

/** As a newer release writes it: with a field, and a state, that this one does not know. */
function newer(id: string): Uint8Array {
  const bytes = toBinary(SessionSchema, { ...session(id), state: 99 as SessionState });
  const more = (part: BinaryWriter) => part.tag(1_000, WireType.LengthDelimited).string("of a newer release").finish();
  return more(new BinaryWriter().tag(1, WireType.LengthDelimited).bytes(more(new BinaryWriter().raw(bytes))));
}

test("ORCH-1 what a newer release wrote of a session stays in it when it is written again here", async () => {
  await using bus = await openTestBus();
  const bucket = createBucket(bus, place);
  await bus.jetstream.publish("$KV.toolbus_sessions.s", newer("s"));
  await bucket.update("s", (standing) => standing && { ...standing, agent: "b" });
  const written = fromBinary(StoredSessionSchema, (await lastOf(bus, "$KV.toolbus_sessions.s"))!.data);
  expect(written.session).toMatchObject({ agent: "b", state: 99 });
  expect([written, written.session].map((part) => part?.$unknown?.map(({ no }) => no))).toEqual([[1_000], [1_000]]);
});

test("ORCH-1 records that cannot be read end no list and no following, and are not written over", async () => {
  await using bus = await openTestBus();
  const bucket = createBucket(bus, place);
  await bus.jetstream.publish("$KV.toolbus_sessions.broken", garbage);
  await bucket.create("before", session("before"));
  const faults: string[] = [];
  await using following = await openBucketView(bucket, (fault) => faults.push(fault));
  const told: string[] = [];
  const news = new SessionChanges();
  news.subscribe(({ key }) => void told.push(key));
  await using _news = await followSessions(bucket, news, (fault) => faults.push(fault));
  await bus.jetstream.publish("$KV.toolbus_sessions.broken", garbage);
  await bucket.create("after", session("after"));
  await until(() => told.includes("after"), { what: "the session behind the record that cannot be read" });
  await following.caughtUp();
  const listed = await Array.fromAsync(bucket.list());
  expect(listed.map(({ key }) => key)).toEqual(["before", "after"]);
  expect(faults).toEqual([]);
  const reading = bucket.update("broken", () => session("broken"));
  await expect(reading).rejects.toMatchObject({ code: "data_loss", message: expect.stringContaining("broken") });
});

test("TOOL-8 what a newer release wrote of a call stays in it, and what only routers know is none of what clients are told", () => {
  const record = callRecord({ callId: "c", sessionId: "s", taken: true, deliveryId: "d", canceledBy: ["ada"] });
  const more = (part: BinaryWriter) => part.tag(1_000, WireType.LengthDelimited).string("of a newer release").finish();
  const known = fromBinary(StoredToolCallSchema, encodeCall(record));
  const call = more(new BinaryWriter().raw(toBinary(ToolCallSchema, known.call!)));
  const rest = toBinary(StoredToolCallSchema, { ...known, call: undefined });
  const bytes = more(new BinaryWriter().raw(rest).tag(1, WireType.LengthDelimited).bytes(call));
  const read = decodeCall(bytes);
  expect(read).toMatchObject({ callId: "c", taken: true, deliveryId: "d", canceledBy: ["ada"] });
  const written = fromBinary(StoredToolCallSchema, encodeCall({ ...read, taken: false }));
  expect(written).toMatchObject({ call: { callId: "c", taken: false }, deliveryId: "d" });
  expect([written, written.call].map((part) => part?.$unknown?.map(({ no }) => no))).toEqual([[1_000], [1_000]]);
  expect(JSON.stringify(toJson(ToolCallSchema, read))).not.toMatch(/delivery|ada/i);
});
