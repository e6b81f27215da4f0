import type { ToolProgress, ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { isRepetition, resultFromOutcome, type Submission, type Won, wonBy } from "#runtime/results/submission.ts";

/**
 * What became of a submission: it won, now or when it was made first; another one has won; nobody here waits for it; or it is
 * late, which is recorded.
 */
export type Reception = "won" | "lost" | "unknown" | "late";

/** A request that waits here for its answer. Disposing it means that nobody waits any more. */
export interface OpenRequest extends Disposable {
  readonly answered: Promise<ToolResult>;
  /** From here on answers are late; they wait until `record` is done. False when an answer was quicker. */
  expire(record: () => Promise<void>): Promise<boolean>;
}

/** The answer that has won. */
interface Winner {
  readonly won: Won;
  readonly result: ToolResult;
}

type RecordWinner = (takenOver: boolean) => Promise<Winner | undefined>;

interface OpenOptions {
  /** Is told how far the caller says that it has come. */
  readonly onProgress: (progress: ToolProgress) => void;
  /** Whether another instance held its call before. */
  readonly takenOver: boolean;
}

interface Open {
  readonly kind: "open";
  readonly takenOver: boolean;
  readonly answer: (result: ToolResult) => void;
}

type Phase =
  | Open
  /** An answer has won once it is recorded; until then it may turn out that it was not. */
  | { readonly kind: "answered"; readonly winner: Promise<Won> }
  | { readonly kind: "expired"; readonly recorded: Promise<void> };

export type Requests = ReturnType<typeof createRequests>;

/** The requests whose calls are held by this instance. Exactly one submission takes each. */
export function createRequests() {
  const phasesByKey = new Map<string, Phase>();
  const progressByKey = new Map<string, (progress: ToolProgress) => void>();

  /** What cannot be recorded has not won: the request is as open as before. */
  function take(key: string, open: Open, own: Winner, record: RecordWinner): Promise<Winner> {
    const recorded = record(open.takenOver).then(
      (other) => other ?? own,
      (error: unknown) => {
        if (phasesByKey.get(key) === answered) phasesByKey.set(key, open);
        throw error;
      },
    );
    const winner = recorded.then(({ won }) => won);
    winner.catch(() => {}); // told to who answers
    const answered: Phase = { kind: "answered", winner };
    phasesByKey.set(key, answered);
    return recorded;
  }

  return {
    /** False when the request does not wait here. */
    tellProgress(key: string, progress: ToolProgress): boolean {
      const tell = progressByKey.get(key);
      if (phasesByKey.get(key)?.kind === "open") tell?.(progress);
      return tell !== undefined;
    },
    open(key: string, { onProgress, takenOver }: OpenOptions): OpenRequest {
      progressByKey.set(key, onProgress);
      const { promise, resolve } = Promise.withResolvers<ToolResult>();
      phasesByKey.set(key, { kind: "open", answer: resolve, takenOver });
      return {
        answered: promise,
        async expire(record) {
          let phase = phasesByKey.get(key);
          while (phase?.kind === "answered") {
            if ((await wonIn(phase)) !== undefined) return false;
            phase = phasesByKey.get(key);
          }
          if (phase?.kind !== "open") return false;
          const recorded = record();
          phasesByKey.set(key, { kind: "expired", recorded });
          await recorded;
          return true;
        },
        [Symbol.dispose]() {
          phasesByKey.delete(key);
          progressByKey.delete(key);
        },
      };
    },
    /**
     * `record` remembers the winner before anybody is told, so that its repetition is known after a crash. It gives another answer
     * when that is recorded, as another instance holds the call, too: then that one has won.
     */
    async answer(key: string, submission: Submission, record: RecordWinner): Promise<Reception> {
      const phase = phasesByKey.get(key);
      if (phase === undefined) return "unknown";
      if (phase.kind === "expired") {
        await phase.recorded;
        return "late";
      }
      if (phase.kind === "answered") {
        const won = await wonIn(phase);
        if (won === undefined) return this.answer(key, submission, record);
        return isRepetition(won, submission, requestOf(key)) ? "won" : "lost";
      }
      const own: Winner = { won: wonBy(submission), result: resultFromOutcome(submission.outcome) };
      const winner = await take(key, phase, own, record);
      phase.answer(winner.result);
      return winner === own || isRepetition(winner.won, submission, requestOf(key)) ? "won" : "lost";
    },
  };
}

/** Undefined when it turned out that it was not recorded. */
function wonIn({ winner }: { readonly winner: Promise<Won> }): Promise<Won | undefined> {
  return winner.catch(() => undefined);
}

/** Of a request that waits here, and of what is stored of one. */
export function keyOfRequest(sessionId: string, requestId: string): string {
  return `${sessionId}.${requestId}`;
}

export function requestOf(key: string): string {
  return key.split(".").at(-1) ?? "";
}
