import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { expect, test } from "vitest";
import { SessionSchema, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { readKey } from "#runtime/bus/key-value.ts";
import { until } from "#runtime/time/until.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { Shelf } from "../catalogue/shelf.ts";
import { SessionNews } from "../switching/session-news.ts";
import { createDocuments, openFollowing } from "./documents.ts";
import { openSessionNews } from "./sessions.ts";

const place = { bucket: "toolbus_sessions", prefix: "", schema: SessionSchema } as const;
const garbage = Uint8Array.of(0xff, 0xff, 0xff);
const session = (id: string) => create(SessionSchema, { id, agent: "a", state: SessionState.ACTIVE });

/** As a newer release writes it: with a field, and a state, that this one does not know. */
function newer(id: string): Uint8Array {
  const bytes = toBinary(SessionSchema, { ...session(id), state: 99 as SessionState });
  return new BinaryWriter().raw(bytes).tag(1_000, WireType.LengthDelimited).string("of a newer release").finish();
}

test("ORCH-1 what a newer release wrote of a session stays in it when it is written again here", async () => {
  await using bus = await openTestBus();
  const documents = createDocuments(bus, place);
  await (await bus.keyValue("toolbus_sessions")).put("s", newer("s"));
  await documents.update("s", (standing) => standing && { ...standing, agent: "b" });
  const written = fromBinary(SessionSchema, (await readKey(bus, "toolbus_sessions", "s"))!.value);
  expect(written).toMatchObject({ agent: "b", state: 99 });
  expect(written.$unknown).toMatchObject([{ no: 1_000 }]);
});

test("ORCH-1 records that cannot be read end no list and no following, and are not written over", async () => {
  await using bus = await openTestBus();
  const documents = createDocuments(bus, place);
  const kv = await bus.keyValue("toolbus_sessions");
  await kv.put("broken", garbage);
  await documents.create("before", session("before"));
  const faults: string[] = [];
  const shelf = new Shelf<unknown>();
  await using _following = await openFollowing(bus, "toolbus_sessions", [{ shelf, place }], (fault) =>
    faults.push(fault),
  );
  const told: string[] = [];
  const news = new SessionNews();
  news.mind(({ key }) => void told.push(key));
  await using _news = await openSessionNews(bus, news, (fault) => faults.push(fault));
  await kv.put("broken", garbage);
  await documents.create("after", session("after"));
  await until(() => told.includes("after"), { what: "the session behind the record that cannot be read" });
  await _following.caughtUp();
  const listed = await Array.fromAsync(documents.list(new AbortController().signal));
  expect(listed.map(({ key }) => key)).toEqual(["before", "after"]);
  expect(faults).toEqual([]);
  const reading = documents.update("broken", () => session("broken"));
  await expect(reading).rejects.toMatchObject({ code: "data_loss", message: expect.stringContaining("broken") });
});
