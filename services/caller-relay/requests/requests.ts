import { create } from "@bufbuild/protobuf";
import { type ToolProgress, type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { errorResult } from "#runtime/results/error-result.ts";
import { isRepetition, type Submission, type Won, wonBy } from "#runtime/results/submission.ts";

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

interface Open {
  readonly kind: "open";
  readonly answer: (result: ToolResult) => void;
}

type Phase =
  | Open
  /** An answer has won once it is recorded; until then it may turn out that it was not. */
  | { readonly kind: "answered"; readonly won: Won; readonly recorded: Promise<void> }
  | { readonly kind: "expired"; readonly recorded: Promise<void> };

export interface Requests {
  /** `onProgress` is told how far the caller says that it has come. */
  open(key: string, onProgress: (progress: ToolProgress) => void): OpenRequest;
  /** False when the request does not wait here. */
  tellProgress(key: string, progress: ToolProgress): boolean;
  /** `record` remembers the winner before anybody is told, so that its repetition is known after a crash. */
  answer(key: string, submission: Submission, record: () => Promise<void>): Promise<Reception>;
}

/** The requests whose calls are held by this instance. Exactly one submission takes each. */
export function createRequests(): Requests {
  const phasesByKey = new Map<string, Phase>();
  const progressByKey = new Map<string, (progress: ToolProgress) => void>();

  /** What cannot be recorded has not won: the request is as open as before. */
  function take(key: string, open: Open, won: Won, record: () => Promise<void>): Promise<void> {
    const recorded = record().catch((error: unknown) => {
      if (phasesByKey.get(key) === answered) phasesByKey.set(key, open);
      throw error;
    });
    const answered: Phase = { kind: "answered", won, recorded };
    phasesByKey.set(key, answered);
    return recorded;
  }

  return {
    tellProgress(key, progress) {
      const tell = progressByKey.get(key);
      if (phasesByKey.get(key)?.kind === "open") tell?.(progress);
      return tell !== undefined;
    },
    open(key, onProgress) {
      progressByKey.set(key, onProgress);
      const { promise, resolve } = Promise.withResolvers<ToolResult>();
      phasesByKey.set(key, { kind: "open", answer: resolve });
      return {
        answered: promise,
        async expire(record) {
          let phase = phasesByKey.get(key);
          while (phase?.kind === "answered") {
            if (await isDone(phase.recorded)) return false;
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
    async answer(key, submission, record) {
      const phase = phasesByKey.get(key);
      if (phase === undefined) return "unknown";
      if (phase.kind === "expired") {
        await phase.recorded;
        return "late";
      }
      if (phase.kind === "answered") {
        if (!(await isDone(phase.recorded))) return this.answer(key, submission, record);
        return isRepetition(phase.won, submission, requestOf(key)) ? "won" : "lost";
      }
      await take(key, phase, wonBy(submission), record);
      phase.answer(resultFrom(submission));
      return "won";
    },
  };
}

function isDone(recorded: Promise<void>): Promise<boolean> {
  return recorded.then(
    () => true,
    () => false,
  );
}

export function keyOfRequest(sessionId: string, requestId: string): string {
  return `${sessionId} ${requestId}`;
}

/** Of what is stored of a request. */
export function keyOfRecord(sessionId: string, requestId: string): string {
  return `${sessionId}.${requestId}`;
}

function requestOf(key: string): string {
  return key.split(" ").at(-1) ?? "";
}

export function resultFrom({ outcome: { case: kind, value } }: Submission): ToolResult {
  return kind === "error" ? errorResult(value) : create(ToolResultSchema, { outputJson: value });
}
