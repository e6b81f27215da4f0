import { expect, test } from "vitest";
import { createInSpan } from "#runtime/telemetry/in-span.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createJournal } from "../log/journal.ts";
import { createMemoryRunLog } from "../testing/fakes/memory-log.ts";
import { createMemoryQueues } from "../testing/fakes/memory-queues.ts";
import { enqueue } from "./queue.ts";
import { type TurnLoopOptions, turnLoop } from "./turn-loop.ts";

test("LOOP-13 what a run needs is asked for while it is claimed, and given up when it could not be", async () => {
  const [log, queues] = [createMemoryRunLog(), createMemoryQueues()];
  const journal = createJournal(log, "r", systemClock);
  await journal.append(() => ({ case: "accepted", value: { sessionId: "s", agent: "helper" } }));
  const entry = await enqueue(queues, { sessionId: "s", runId: "r", acceptedPosition: journal.position });
  const asked: Record<string, AbortSignal> = {};
  const asks =
    (what: string) =>
    (_: unknown, { signal }: { signal: AbortSignal }) => {
      asked[what] = signal;
      return new Promise(() => {});
    };
  const options = {
    ...{ log, queues, clock: systemClock, inSpan: createInSpan(undefined), handover: new AbortController().signal },
    ...{
      router: { listTools: asks("tools") },
      agents: { getAgent: asks("agent") },
      inbox: { getRunContext: asks("inbox") },
    },
  } as unknown as TurnLoopOptions;
  const claim = async () => {
    expect(Object.keys(asked).toSorted()).toEqual(["agent", "inbox", "tools"]);
    return undefined; // another process has it
  };
  const active = { journal, entry, state: journal.state! };
  expect(await turnLoop(options, claim, active, new AbortController().signal)).toBeUndefined();
  expect(Object.values(asked).map(({ aborted }) => aborted)).toEqual([true, true, true]);
});
