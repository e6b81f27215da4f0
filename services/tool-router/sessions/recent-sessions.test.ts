import { expect, test } from "vitest";
import { SessionState as State } from "#gen/toolbus/session/v1/session_pb.ts";
import type { Stored } from "#runtime/bus/buckets/bucket.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { RecentSessions } from "./recent-sessions.ts";
import { type SessionRecord, sessionRecord } from "./session-record.ts";

async function open() {
  const clock = createManualClock(1_000_000);
  const written: Stored<SessionRecord>[] = [];
  const stored = createMemoryBucket<SessionRecord>({ onWrite: (one) => void written.push(one) });
  const recent = new RecentSessions(clock);
  await stored.create("s", sessionRecord({ id: "s", agent: "red", state: State.ACTIVE }));
  /** Another router does it, and its news has not come yet. */
  const drainElsewhere = () => stored.update("s", (session) => session && { ...session, state: State.DRAINING });
  return { clock, written, stored, recent, bucket: recent.remembering(stored), drainElsewhere };
}

test("ORCH-1 recent-sessions-1 an active session is known for a second after it was created or read, and in no other state", async () => {
  const { clock, recent, bucket, written, drainElsewhere } = await open();
  expect(recent.active("s")).toBeUndefined();
  await bucket.create("t", sessionRecord({ id: "t", agent: "red", state: State.ACTIVE }));
  recent.put(written.at(-1)!); // the news of it
  expect(recent.active("t")?.agent).toBe("red");
  await bucket.read("s");
  await clock.advance(999);
  expect(recent.active("s")?.agent).toBe("red");
  await clock.advance(1);
  expect(recent.active("s")).toBeUndefined();
  await drainElsewhere();
  await bucket.read("s");
  expect(recent.active("s")).toBeUndefined();
});

test("ORCH-1 recent-sessions-2 what is heard or written ends what was read, and a reading that is late changes nothing", async () => {
  const { recent, bucket, stored, written, drainElsewhere } = await open();
  const late = (await stored.read("s"))!;
  await bucket.read("s");
  await drainElsewhere();
  expect(recent.active("s")?.agent).toBe("red");
  recent.put(written.at(-1)!);
  expect(recent.active("s")).toBeUndefined();
  await recent.remembering({ ...stored, read: async () => late }).read("s");
  expect(recent.active("s")).toBeUndefined();
  await bucket.update("s", (session) => session && { ...session, state: State.ACTIVE, agent: "blue" });
  expect(recent.active("s")).toBeUndefined(); // what was written is read once
  expect((await bucket.read("s"))?.value.agent).toBe("blue");
  expect(recent.active("s")?.agent).toBe("blue");
});
