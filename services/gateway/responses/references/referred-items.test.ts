import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { inputFrom } from "../request/input.ts";
import type { Asking } from "../runs.ts";
import { withReferredItems } from "./referred-items.ts";

const TURNS = 3;
const idOf = (runId: string, turn: number) => `msg_${runId}_${turn}_0`;
const referenceTo = (runId: string, turn: number) => ({ type: "item_reference", id: idOf(runId, turn) });

/** Of runs that have said something in each of their turns. */
function askingOf(maxBytes = 100_000) {
  const read: string[] = [];
  const runs = {
    async getRun({ runId }: { runId: string }) {
      read.push(runId);
      return { run: { id: runId, lastSequence: TURNS + 1 } };
    },
    async *watchRun({ runId }: { runId: string }) {
      const logged = (sequence: number, event: object) =>
        create(WatchRunResponseSchema, {
          update: { case: "event", value: { runId, sequence, event: event as never } },
        });
      yield logged(1, { case: "accepted", value: { agent: "a", options: {} } });
      for (let turn = 1; turn <= TURNS; turn += 1) {
        const message = { role: Role.ASSISTANT, content: textContent(`${runId} said ${turn}`) };
        const items = [{ item: { case: "message", value: message } }];
        yield logged(turn + 1, { case: "turnCommitted", value: { turn, items } });
      }
    },
  };
  const asking = { parts: { runs, maxBytes }, options: { signal: new AbortController().signal } } as unknown as Asking;
  return { asking, read };
}

it("LOOP-18 each run that an input refers to is read once, however its items are mixed", async () => {
  const { asking, read } = askingOf();
  const input = [1, 2, 3].flatMap((turn) => [referenceTo("r1", turn), referenceTo("r2", turn)]);
  const items = await withReferredItems(asking, [...input]);
  expect(items).toMatchObject(input.map(({ id }) => ({ id, type: "message" })));
  expect(read).toEqual(["r1", "r2"]);
});

it("LOOP-18 an input refers to items of 4,096 runs at most, and of a size", async () => {
  const { asking, read } = askingOf(10_000_000);
  const input = Array.from({ length: 4_097 }, (_, n) => referenceTo(`r${n}`, 1));
  await expect(withReferredItems(asking, input.slice(1))).resolves.toHaveLength(4_096);
  await expect(withReferredItems(asking, input)).rejects.toMatchObject({
    reason: "INVALID_REQUEST",
    message: expect.stringMatching(/^input\[4096\]: .*4096 responses.*previous_response_id/),
  });
  expect(read, "of too many, none is read").toHaveLength(4_096);
  const small = askingOf(1_000);
  await expect(withReferredItems(small.asking, input.slice(1))).rejects.toMatchObject({ reason: "MESSAGE_TOO_LARGE" });
  expect(small.read.length).toBeLessThan(30);
});

it("LOOP-18 some of the runs that an input refers to are read at the same time", async () => {
  const { asking, read } = askingOf();
  const { promise, resolve } = Promise.withResolvers<void>();
  const { getRun } = asking.parts.runs;
  asking.parts.runs.getRun = async (...asked) => {
    const answer = await getRun(...asked);
    await promise;
    return answer;
  };
  const items = withReferredItems(
    asking,
    [...Array(20).keys()].map((n) => referenceTo(`r${n}`, 1)),
  );
  await new Promise(setImmediate);
  expect(read).toHaveLength(8);
  resolve();
  await expect(items).resolves.toHaveLength(20);
});

it("LOOP-18 a fault behind a reference that was there before is told with its own place", async () => {
  const again = referenceTo("r1", 1);
  const input = [{ role: "user", content: "x" }, again, again, { role: "dog", content: "bad" }];
  const items = await withReferredItems(askingOf().asking, input);
  expect(() => inputFrom({ model: "a", input: items })).toThrow(/^input\[3\]/);
  expect(inputFrom({ model: "a", input: items?.slice(0, 3) }).items).toHaveLength(2);
});
