import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { AgentSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { systemClock as clock } from "#runtime/time/clock.ts";
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { SessionChanges } from "../session-changes.ts";
import { type SessionRecord, sessionRecord } from "../session-record.ts";
import { Sessions } from "../sessions.ts";
import { watchSession } from "./watch.ts";

async function openWatched() {
  const changes = new SessionChanges();
  const bucket = createMemoryBucket<SessionRecord>({ onWrite: (stored) => changes.publish(stored) });
  const agent = create(AgentSchema, { name: "red" });
  const loaded = { revision: 1, notify: () => {} };
  const catalogue: Partial<Catalogue> = {
    agent: () => ({ agent, revision: loaded.revision }),
    onAgentsChange(listener) {
      loaded.notify = listener;
      return { [Symbol.dispose]() {} };
    },
  };
  const sessions = new Sessions({ bucket, catalogue: catalogue as Catalogue, clock, changes });
  const open = (principal: string) =>
    bucket.create("s", sessionRecord({ id: "s", agent: "red", principal, state: SessionState.ACTIVE }));
  await open("alice");
  const ends = new AbortController();
  const watch = watchSession({ sessions, changes, catalogue: catalogue as Catalogue }, "s", ends.signal);
  return { bucket, sessions, loaded, open, ends, watch };
}

test("ORCH-1 a watch tells of an agent that is loaded afresh while its reader takes another change", async () => {
  const { sessions, loaded, ends, watch } = await openWatched();
  const nextRevision = async () => (await watch.next()).value?.contextRevision;
  expect(await nextRevision()).toBe(1);
  const told = nextRevision();
  await sessions.setLogLevel("s", 1);
  expect(await told).toBe(1);
  loaded.revision = 2; // the reader has the change above, and has not asked for the next
  loaded.notify();
  const late = setTimeout(() => ends.abort(new Error("it is not told")), 1_000);
  expect(await nextRevision()).toBe(2);
  clearTimeout(late);
});

test("SEC-2 a watch tells nothing of the session that another principal opens under the id of one that was forgotten", async () => {
  const { bucket, open, watch } = await openWatched();
  expect((await watch.next()).value?.principal).toBe("alice");
  const next = watch.next();
  await bucket.remove("s");
  await open("bob");
  await expect(next).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
});
