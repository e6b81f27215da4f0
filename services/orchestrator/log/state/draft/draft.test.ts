import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RunTextReplacedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { TextCheckpointSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { type Draft, draftAfter, nextCheckpoint, weightOfCheckpoint } from "./draft.ts";

function soFar(attempt: number, deltas: number, text: string) {
  return create(RunTextReplacedSchema, { turn: 1, attempt, deltaCount: deltas, text });
}

/** Writes checkpoints as long as there is room, and folds them. */
function openDraft(items = 0) {
  let draft: Draft | undefined;
  let checkpoints = 0;
  return {
    write(reset: ReturnType<typeof soFar>): string | undefined {
      const body = nextCheckpoint({ draft, weight: { items, checkpoints } }, reset);
      if (body === undefined) return undefined;
      const checkpoint = create(TextCheckpointSchema, body);
      checkpoints += weightOfCheckpoint(checkpoint);
      draft = draftAfter(draft, checkpoint);
      return checkpoint.text;
    },
    get draft() {
      return draft;
    },
    get weight() {
      return checkpoints;
    },
  };
}

describe("a draft", () => {
  test("LOOP-10 is what its attempt said until the last checkpoint, each of which holds only what is new", () => {
    const piece = fc.record({ text: fc.constantFrom("", "a ", "once ", "\u{1f600}"), isStored: fc.boolean() });
    fc.assert(
      fc.property(fc.array(fc.array(piece, { maxLength: 12 }), { maxLength: 4 }), (attempts) => {
        const written = openDraft();
        for (const [index, pieces] of attempts.entries()) {
          let text = "";
          let stored = "";
          for (const [n, { text: more, isStored }] of pieces.entries()) {
            text += more;
            if (!isStored) continue;
            const added = written.write(soFar(index + 1, n + 1, text)) ?? "";
            expect(stored + added).toBe(text);
            stored = text;
            if (added !== "") expect(written.draft).toMatchObject({ attempt: index + 1, deltaCount: n + 1, text });
          }
        }
      }),
    );
  });

  test("LOOP-10 grows no further when it has no room, and is a prefix of what is said all the same", () => {
    const said = (deltas: number) => soFar(1, deltas, "x".repeat(deltas * 1_000));
    const alone = openDraft();
    const amongItems = openDraft(1_000_000);
    for (let deltas = 1; deltas <= 500; deltas += 1) {
      alone.write(said(deltas));
      amongItems.write(said(deltas));
    }
    expect(alone.weight).toBeLessThanOrEqual(32 * 1_024);
    expect(amongItems.weight / 1_000_000).toBeLessThan(0.2);
    expect(said(500).text.startsWith(alone.draft!.text)).toBe(true);
    expect(amongItems.draft!.text.length).toBeGreaterThan(alone.draft!.text.length);
  });

  test("LOOP-10 takes no checkpoint that does not join it", () => {
    const draft: Draft = { turn: 1, attempt: 2, deltaCount: 3, text: "so far" };
    const further = { turn: 1, attempt: 2, deltaCount: 9, text: " and on" };
    const textAfter = (firstDelta: number) =>
      draftAfter(draft, create(TextCheckpointSchema, { ...further, firstDelta }))?.text;
    expect([textAfter(3), textAfter(4), textAfter(0)]).toEqual(["so far and on", "so far", " and on"]);
  });
});
