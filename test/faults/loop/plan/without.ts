import type { Edit } from "../../processes/tree.ts";
import type { Pair } from "./points.ts";

/** A part of the loop that is taken away in a copy of the tree, and the pairs at which that shows. */
export interface Without {
  readonly meaning: string;
  readonly edits: readonly Edit[];
  readonly pairs: readonly Pair[];
}

export const withouts: Readonly<Record<string, Without>> = {
  fence: {
    meaning: "an append is stored wherever its log has got to",
    edits: [
      {
        file: "runtime/bus/streams/append/append.ts",
        from: "function allHeaders({ headers: fields, expectedLastSequence, messageId }: FencedAppend,",
        to: "function allHeaders({ headers: fields, expectedLastSequence, messageId, subject }: FencedAppend,",
      },
      {
        file: "runtime/bus/streams/append/append.ts",
        from: "all.set(PubHeaders.ExpectedLastSubjectSequenceHdr,",
        to: 'if (!subject.startsWith("toolbus.run.run_")) all.set(PubHeaders.ExpectedLastSubjectSequenceHdr,',
      },
    ],
    pairs: [
      { point: "before commit", fault: "SIGSTOP" },
      { point: "before commit", fault: "duplicate delivery" },
    ],
  },
  "start-record": {
    meaning: "calls that must not happen twice are not recorded before they start",
    edits: [
      {
        file: "services/tool-router/calls/records/records.ts",
        from: "return effect === Effect.AT_MOST_ONCE ? State.STARTED : undefined;",
        to: "return effect === Effect.AT_MOST_ONCE && process.pid < 0 ? State.STARTED : undefined;",
      },
    ],
    pairs: [{ point: "effect done, not recorded", fault: "kill -9" }],
  },
  tombstone: {
    meaning: "the open calls of a canceled run are not canceled at the router",
    edits: [
      {
        file: "services/orchestrator/loop/calls/cancel-calls.ts",
        from: "isNeverDispatched ? [] : openCalls(state).filter((call) => ",
        to: "isNeverDispatched ? [] : openCalls(state).filter((call) => process.pid < 0 && ",
      },
    ],
    pairs: [{ point: "after commit", fault: "SIGSTOP" }],
  },
  wake: {
    meaning: "a session is woken after its news is stored, not before",
    edits: [
      {
        file: "services/orchestrator/log/journal.ts",
        from: "await announce?.(event.sequence + 1); // journal-4\n      if (onWay)",
        to: "if (onWay)",
      },
      {
        file: "services/orchestrator/log/journal.ts",
        from: "if (clock.now() - announcedAtMs > wakeWaitsMs / 2) await",
        to: "await",
      },
    ],
    pairs: [{ point: "after accept", fault: "kill -9" }],
  },
  reset: {
    meaning: "watchers are not told that an attempt was given up",
    edits: [
      {
        file: "services/orchestrator/runs/watch/watch-view.ts",
        from: "for (const { kind, value } of step.shown) yield",
        to: 'for (const { kind, value } of step.shown) if (kind !== "replaced") yield',
      },
    ],
    pairs: [
      { point: "in mid text", fault: "kill -9" },
      { point: "in mid text", fault: "provider reset" },
    ],
  },
};
