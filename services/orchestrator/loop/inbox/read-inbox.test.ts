import { expect, test } from "vitest";
import { Failure } from "#runtime/failure/failure.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import type { FoldedRun } from "../../log/state/fold.ts";
import { inboxEvent } from "../../testing/fakes/fake-spaces.ts";
import type { Inbox } from "./inbox.ts";
import { readInbox } from "./read-inbox.ts";

const state = {
  runId: "r",
  accepted: { sessionId: "s", agent: "helper", principal: "ada", input: [{}], fork: undefined },
  turns: [],
} as unknown as FoldedRun;
const events = [inboxEvent({ sessionId: "s", agent: "helper", eventId: "e", text: "news" })];

/** Spaces that are away for so many requests. */
function openInbox(awayFor: number) {
  const [clock, warnings] = [createManualClock(), [] as string[]];
  const asked = { count: 0 };
  const inbox = {
    async getRunContext() {
      asked.count += 1;
      if (asked.count <= awayFor) throw new Failure("unavailable", "nobody serves it", { reason: "BUS_UNAVAILABLE" });
      return { parts: [], events };
    },
  } as unknown as Inbox;
  const logger = { warn: (_: object, text: string) => void warnings.push(text) } as never;
  const read = () => readInbox({ inbox, clock, logger }, state, new AbortController().signal);
  return { clock, warnings, asked, read };
}

async function advanced<T>(clock: ReturnType<typeof createManualClock>, result: Promise<T>): Promise<T> {
  for (let second = 0; second < 10; second += 1) await clock.advance(1_000);
  return result;
}

test("TOOL-9 a run waits a moment for spaces that start with it, and has its inbox and memory", async () => {
  const { clock, warnings, read } = openInbox(3);
  expect((await advanced(clock, read())).events).toEqual(events);
  expect(warnings).toEqual([]);
});

test("TOOL-9 a run goes on without them when spaces stay away, and the log says so", async () => {
  const { clock, warnings, asked, read } = openInbox(Number.POSITIVE_INFINITY);
  expect((await advanced(clock, read())).events).toEqual([]);
  expect(warnings).toEqual(["a run goes on without its inbox and memory"]);
  expect(asked.count).toBeGreaterThan(2);
});
