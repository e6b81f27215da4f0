import type { FoldedRun } from "../../log/state/fold.ts";

/** A change of a run as a list shows it. */
export interface RunChange {
  /** Where it is stored; of a deletion, which is not, where what was taken in before is. */
  readonly sequence: number;
  readonly runId: string;
  /** Whose run it is. */
  readonly principal: string;
  /** How the run stood before it; there is none of a run that is new. */
  readonly before: FoldedRun | "none" | "unknown";
  /** Undefined for a run that was deleted. */
  readonly after: FoldedRun | undefined;
}

export interface Bounds {
  readonly changes: number;
  /** Characters of what ended runs said: what else there is of a change takes little room. */
  readonly characters: number;
}

export type RecentChanges = ReturnType<typeof createRecentChanges>;

/** The latest changes, held once for all who follow them. Each has a number, by which followers know where they stand. */
export function createRecentChanges(start: number, bounds: Bounds) {
  let changes: RunChange[] = [];
  let dropped = 0;
  let first = start;
  let characters = 0;

  function drop(): void {
    const oldest = changes.shift();
    if (oldest === undefined) return;
    dropped += 1;
    characters -= charactersOf(oldest);
    first = oldest.sequence + 1;
  }

  return {
    /** All changes that are stored from there on are held. */
    get first() {
      return first;
    },
    /** The number of the first that is held. */
    get firstNumber() {
      return dropped;
    },
    add(change: RunChange): void {
      changes.push(change);
      characters += charactersOf(change);
      while (changes.length > bounds.changes || (characters > bounds.characters && changes.length > 1)) drop();
    },
    /** What is stored there cannot be had: whoever has not read as far is told a gap up to it. */
    passOver(sequence: number): void {
      dropped += changes.length + 1; // who has read all there was is behind it, too
      changes = [];
      characters = 0;
      first = sequence + 1;
    },
    /** The number of the first that is stored there or behind it. */
    numberAt(sequence: number): number {
      return dropped + 1 + changes.findLastIndex((change) => change.sequence < sequence);
    },
    /** Some of those from a number on; none when there are none yet. */
    since: (number: number): readonly RunChange[] => changes.slice(number - dropped, number - dropped + mostAtOnce),
  };
}

const mostAtOnce = 256;

function charactersOf({ after }: RunChange): number {
  if (after?.phase.kind !== "ended") return 0;
  return after.phase.ended.outputText.length + after.phase.ended.error.length;
}
