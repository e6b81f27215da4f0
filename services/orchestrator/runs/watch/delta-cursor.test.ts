import { create } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type RunDelta, RunDeltaSchema, RunTextReplacedSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { type DeltaCursor, type Shown, stepFromCommit, stepFromDelta, stepFromSnapshot } from "./delta-cursor.ts";

function delta(attempt: number, n: number, text = `${n} `): RunDelta {
  return create(RunDeltaSchema, { turn: 1, attempt, index: n, delta: { case: "text", value: text } });
}

function textShown(shown: readonly Shown[]): string {
  return shown.reduce((text, { kind, value }) => {
    if (kind === "replaced") return value.text;
    return value.delta.case === "text" ? text + value.delta.value : text;
  }, "");
}

describe("a watcher's cursor", () => {
  test("LOOP-10 what is shown is a prefix of the attempt that counts or is followed by a reset, whatever gets lost", () => {
    const bufferedUpdate = fc.record({
      attempt: fc.integer({ min: 1, max: 3 }),
      n: fc.nat({ max: 6 }),
      isLost: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.uniqueArray(bufferedUpdate, { selector: ({ attempt, n }) => `${attempt} ${n}` }),
        (bufferedUpdates) => {
          const inOrder = bufferedUpdates
            .sort((a, b) => a.attempt - b.attempt || a.n - b.n)
            .filter(({ isLost }) => !isLost);
          let cursor: DeltaCursor | undefined;
          const shown: Shown[] = [];
          for (const { attempt, n } of inOrder) {
            const step = stepFromDelta(cursor, delta(attempt, n), 0);
            cursor = step.cursor;
            shown.push(...step.shown);
            if (cursor) {
              const prefix = Array.from({ length: cursor.next }, (_, index) => `${index} `).join("");
              expect(textShown(shown)).toBe(prefix);
            }
          }
        },
      ),
    );
  });

  test("LOOP-10 a gap is told, and the snapshot that answers it continues the stream", () => {
    const gap = stepFromDelta({ turn: 1, attempt: 1, next: 2 }, delta(1, 4), 0);
    expect(gap).toMatchObject({ isGap: true, shown: [] });
    const reset = create(RunTextReplacedSchema, { turn: 1, attempt: 1, text: "all of it", deltaCount: 5 });
    const step = stepFromSnapshot(gap.cursor, reset, 0);
    expect(step).toMatchObject({ cursor: { turn: 1, attempt: 1, next: 5 }, shown: [{ kind: "replaced" }] });
    expect(stepFromDelta(step.cursor, delta(1, 5), 0).shown).toHaveLength(1);
  });

  test("a snapshot that tells nothing further is not shown", () => {
    const reset = create(RunTextReplacedSchema, { turn: 1, attempt: 1, text: "known", deltaCount: 2 });
    expect(stepFromSnapshot({ turn: 1, attempt: 1, next: 2 }, reset, 0).shown).toEqual([]);
  });

  test("text of an attempt that was given up is replaced when another one is committed", () => {
    const step = stepFromCommit({ turn: 1, attempt: 1, next: 3 }, 1, 2, "the answer");
    expect(step.shown).toMatchObject([{ kind: "replaced", value: { attempt: 2, text: "the answer" } }]);
    expect(stepFromCommit({ turn: 1, attempt: 2, next: 3 }, 1, 2, "the answer").shown).toEqual([]);
  });

  test("deltas of a committed turn come too late", () => {
    expect(stepFromDelta(undefined, delta(1, 0), 1).shown).toEqual([]);
  });
});
