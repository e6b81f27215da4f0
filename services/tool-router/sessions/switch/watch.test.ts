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

test("ORCH-1 a watch tells of an agent that is loaded afresh while its reader takes another change", async () => {
  const changes = new SessionChanges();
  const bucket = createMemoryBucket<SessionRecord>({ onWrite: (stored) => changes.publish(stored) });
  const agent = create(AgentSchema, { name: "red" });
  let [revision, listener] = [1, () => {}];
  const catalogue: Partial<Catalogue> = {
    agent: () => ({ agent, revision }),
    onAgentsChange(told) {
      listener = told;
      return { [Symbol.dispose]() {} };
    },
  };
  const sessions = new Sessions({ bucket, catalogue: catalogue as Catalogue, clock, changes });
  await bucket.create("s", sessionRecord({ id: "s", agent: "red", state: SessionState.ACTIVE }));
  const ends = new AbortController();
  const parts = { sessions, changes, catalogue: catalogue as Catalogue };
  const watch = watchSession(parts, "s", ends.signal);
  const nextRevision = async () => (await watch.next()).value?.contextRevision;
  expect(await nextRevision()).toBe(1);
  const told = nextRevision();
  await sessions.setLogLevel("s", 1);
  expect(await told).toBe(1);
  revision = 2; // the reader has the change above, and has not asked for the next
  listener();
  const ended = setTimeout(() => ends.abort(new Error("it is not told")), 1_000);
  expect(await nextRevision()).toBe(2);
  clearTimeout(ended);
});
