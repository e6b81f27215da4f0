import { expect, test } from "vitest";
import type { RunDelta } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { createDeltaWriter } from "./deltas.ts";

const said = (text: string) => ({ kind: "text", text }) as const;

test("LOOP-10 the first piece of an answer goes at once, and those that follow within a beat together", () => {
  const sent: RunDelta[] = [];
  const writer = createDeltaWriter({ turn: 1, attempt: 1 }, (delta) => sent.push(delta));
  writer.write(said("a"));
  expect(sent.map(({ delta }) => delta.value)).toEqual(["a"]);
  writer.write(said("b"));
  writer.write(said("c"));
  expect(sent).toHaveLength(1);
  writer.flush();
  expect(sent.map(({ index, delta }) => [index, delta.value])).toEqual([
    [0, "a"],
    [1, "bc"],
  ]);
});

test("LOOP-10 the text so far says whether it is all that was said", () => {
  const writer = createDeltaWriter({ turn: 1, attempt: 1 }, () => {});
  writer.write(said("a"));
  expect(writer.snapshot()).toMatchObject({ text: "a", deltaCount: 1, textOnly: true });
  writer.write({ kind: "reasoning", text: "hm" });
  writer.flush();
  expect(writer.snapshot()).toMatchObject({ text: "a", deltaCount: 2, textOnly: false });
});
