import { create } from "@bufbuild/protobuf";
import { type ToolResult, ToolResultSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuseField } from "#runtime/failure/failure.ts";

export interface CallerAnswer {
  /** JSON text; empty means null. */
  resultJson: string;
  /** A non-empty one wins. */
  error: string;
}

/** What became of an answer: it won; nobody here waits for it; or it is late, and may go on once that is recorded. */
export type Reception = { kind: "taken" } | { kind: "unknown" } | { kind: "late"; recorded: Promise<void> };

/** A request that waits here for its answer. Disposing it means that nobody waits any more. */
export interface OpenRequest extends Disposable {
  readonly answered: Promise<ToolResult>;
  /** From here on answers are late; they wait until `record` is done. False when an answer was quicker. */
  expire(record: () => Promise<void>): Promise<boolean>;
}

type Phase = { kind: "open"; answer: (result: ToolResult) => void } | { kind: "expired"; recorded: Promise<void> };

export interface Requests {
  open(key: string): OpenRequest;
  answer(key: string, answer: CallerAnswer): Reception;
}

/** The requests whose calls are held by this instance. Exactly one answer takes each. */
export function createRequests(): Requests {
  const phasesByKey = new Map<string, Phase>();
  return {
    open(key) {
      const { promise, resolve } = Promise.withResolvers<ToolResult>();
      phasesByKey.set(key, { kind: "open", answer: resolve });
      return {
        answered: promise,
        async expire(record) {
          if (phasesByKey.get(key)?.kind !== "open") return false;
          const recorded = record();
          phasesByKey.set(key, { kind: "expired", recorded });
          await recorded;
          return true;
        },
        [Symbol.dispose]: () => phasesByKey.delete(key),
      };
    },
    answer(key, answer) {
      const phase = phasesByKey.get(key);
      if (phase === undefined) return { kind: "unknown" };
      if (phase.kind === "expired") return { kind: "late", recorded: phase.recorded };
      phasesByKey.delete(key);
      phase.answer(resultFromAnswer(answer));
      return { kind: "taken" };
    },
  };
}

export function keyOfRequest(sessionId: string, requestId: string): string {
  return `${sessionId} ${requestId}`;
}

export function resultFromAnswer({ resultJson, error }: CallerAnswer): ToolResult {
  if (error !== "") return errorResult(error);
  return create(ToolResultSchema, { outputJson: resultJson === "" ? "null" : resultJson });
}

export function errorResult(error: string): ToolResult {
  return create(ToolResultSchema, { outputJson: JSON.stringify({ error }), isError: true });
}

/** Refuses an answer that no agent could read; its request stays open. */
export function refuseUnreadable({ resultJson, error }: CallerAnswer): void {
  if (error !== "" || resultJson === "") return;
  try {
    JSON.parse(resultJson);
  } catch (cause) {
    refuseField("result_json", "is no JSON text", cause);
  }
}
