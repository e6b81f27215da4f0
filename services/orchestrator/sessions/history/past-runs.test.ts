import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { QueuedRunSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { foldLog } from "../../log/state/fold.ts";
import { createMemory } from "./past-runs.ts";

const entry = (position: number) => ({ queued: create(QueuedRunSchema, { runId: `r${position}` }), position });
const stateOf = (characters: number) => {
  const text = "x".repeat(characters);
  const input = [{ item: { case: "message" as const, value: { content: textContent(text) } } }];
  const event = create(RunEventSchema, { runId: "r", event: { case: "accepted", value: { input } } });
  return foldLog([{ event, epoch: 0, instance: "" }])!;
};

test("LOOP-1 what is remembered of runs is bounded, and what was not asked for the longest is forgotten first", () => {
  const memory = createMemory(100_000);
  for (let position = 1; position <= 9; position += 1) {
    memory.put(entry(position), stateOf(8_000));
    memory.get(1);
  }
  memory.put(entry(10), stateOf(8_000));
  const known = Array.from({ length: 10 }, (_, index) => index + 1).filter((position) => memory.get(position));
  expect(known).toEqual([1, 3, 4, 5, 6, 7, 8, 9, 10]);
  memory.put(entry(11), stateOf(50_000));
  expect(memory.get(11), "one that would take the room of many is read again").toBeUndefined();
});
