/** What the model of the measurements is told to do: the text of a run's input, as JSON. */
export interface Plan {
  /** Names the run in the samples. */
  readonly id: string;
  /** Turns with calls; one with an answer follows. */
  readonly turns: number;
  /** Calls of each turn. */
  readonly calls: number;
  readonly tool: string;
  /** Pieces of text in each turn. */
  readonly deltas: number;
  /** Time between two pieces; 0 for none. */
  readonly deltaMs: number;
  /** Size of each call's argument, which the tool gives back. */
  readonly argumentBytes: number;
}

export const quiet: Omit<Plan, "id"> = {
  turns: 1,
  calls: 1,
  tool: "repeat",
  deltas: 1,
  deltaMs: 0,
  argumentBytes: 8,
};

/** The model's view of one run: when it was asked, and when it had answered, in milliseconds of `performance.now()`. */
export interface Sample {
  readonly askedAtMs: number;
  readonly answeredAtMs: number;
}

/** A piece of text that tells when it was due, so that whoever reads it knows how late it is. */
export function pieceDueAt(ms: number): string {
  return `${ms.toString(36)} `;
}

/** When the pieces of a text were due. */
export function dueTimesOf(text: string): number[] {
  return text
    .trim()
    .split(" ")
    .map((piece) => Number.parseInt(piece, 36));
}
