import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { SessionSchema, SessionState as State } from "#gen/toolbus/session/v1/session_pb.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { createSessionDrain } from "./drain.ts";
import { SessionCalls } from "./session-calls.ts";

type SessionInit = MessageInitShape<typeof SessionSchema>;

function openDepartures() {
  const clock = createManualClock();
  const calls = new SessionCalls();
  const did: string[] = [];
  const departures = createSessionDrain({
    calls,
    clock,
    contexts: {
      closeContext: ({ contextRevision }) => did.push(`closes ${contextRevision}`),
      reopenContext: () => did.push("may return"),
    },
    audit: ({ callId }) => did.push(`audits ${callId}`),
    logger: { warn: () => {} },
    announceDrained: (_, revision) => did.push(`left since ${revision}`),
  });
  const tell = (
    revision: number,
    state: State,
    more: Pick<SessionInit, "agent" | "contextRevision" | "nextAgent"> = {},
  ) => {
    const drainUntil = timestampFromMs(5_000);
    const value = create(SessionSchema, { id: "s", agent: "red", drainExpireTime: drainUntil, ...more, state });
    departures.onChange({ key: "s", revision, value });
  };
  const drain = (revision: number) => tell(revision, State.DRAINING, { nextAgent: "blue" });
  return { clock, calls, did, departures, tell, drain };
}

test("ORCH-1 a router without calls leaves at once, and says so again when asked", async () => {
  const { clock, did, departures, drain, tell } = openDepartures();
  drain(7);
  await clock.advance(0);
  expect(did).toEqual(["closes 0", "left since 7"]);
  departures.onAsked("s", 7);
  departures.onAsked("s", 8); // a revision that it has not heard of
  departures.onAsked("other", 1);
  expect(did).toEqual(["closes 0", "left since 7", "left since 7"]);
  tell(9, State.ACTIVE, { agent: "blue", contextRevision: 12 });
  expect(did.at(-1)).toBe("may return");
  departures.onAsked("s", 7);
  expect(did.filter((one) => one === "left since 7")).toHaveLength(2);
});

test("ORCH-1 calls get their time to the millisecond, and are canceled one and all after it", async () => {
  const { clock, calls, did, drain } = openDepartures();
  const [short, long] = [calls.track("s", "short"), calls.track("s", "long")];
  drain(7);
  await clock.advance(4_999);
  short[Symbol.dispose]();
  expect(long.signal.aborted).toBe(false);
  expect(did).toEqual([]);
  await clock.advance(1);
  expect(long.signal.aborted).toBe(true);
  expect(String(long.signal.reason)).toContain('is being switched to agent "blue", and the call took too long');
  long[Symbol.dispose]();
  await clock.advance(0);
  expect(did).toEqual(["audits long", "closes 0", "left since 7"]);
});

test("ORCH-1 a call that does not end though it was canceled is left behind after a second", async () => {
  const { clock, calls, did, drain } = openDepartures();
  calls.track("s", "deaf");
  drain(7);
  await clock.advance(5_999);
  expect(did).toEqual(["audits deaf"]);
  await clock.advance(1);
  expect(did).toEqual(["audits deaf", "closes 0", "left since 7"]);
});

test("ORCH-1 a router that was frozen during a switch cancels what it has of the old agent, and nothing of the next one", async () => {
  const { clock, calls, did, drain, tell } = openDepartures();
  const old = calls.track("s", "old");
  drain(7);
  const next = calls.track("s", "next"); // it has read the session as it stands by then
  tell(9, State.ACTIVE, { agent: "blue", contextRevision: 12 });
  expect([old.signal.aborted, next.signal.aborted]).toEqual([true, false]);
  await clock.advance(10_000);
  expect(did).toEqual(["audits old", "closes 0", "may return"]);
  expect(next.signal.aborted).toBe(false);
});

test("ORCH-1 a switch that is taken back cancels nothing", async () => {
  const { clock, calls, did, drain, tell } = openDepartures();
  const call = calls.track("s", "call");
  drain(7);
  await clock.advance(100);
  tell(8, State.ACTIVE);
  await clock.advance(10_000);
  expect(call.signal.aborted).toBe(false);
  expect(did).toEqual(["may return"]);
});
