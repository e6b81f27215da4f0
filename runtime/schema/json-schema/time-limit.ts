import { createContext, Script } from "node:vm";

/** Runs work that may take for ever, and ends it: it would stand still for everything else of this process. */
export interface TimeLimit {
  /** Throws `OutOfTime` when the time of all work since `begin` is over. */
  run<T>(work: () => T): T;
  begin(): void;
}

export class OutOfTime extends Error {
  constructor(limitMs: number) {
    super(`it takes longer than ${limitMs} ms`);
  }
}

export function createTimeLimit(limitMs: number): TimeLimit {
  const script = new Script("work()");
  const context = createContext({ work: () => {} });
  let leftMs = limitMs;
  return {
    begin() {
      leftMs = limitMs;
    },
    run<T>(work: () => T): T {
      if (leftMs <= 0) throw new OutOfTime(limitMs);
      const startedAt = performance.now();
      try {
        context.work = work;
        return script.runInContext(context, { timeout: Math.max(1, Math.ceil(leftMs)) }) as T;
      } catch (error) {
        // by its code alone: an error of the context's own realm is no instance of this one's
        throw Object(error).code === "ERR_SCRIPT_EXECUTION_TIMEOUT" ? new OutOfTime(limitMs) : error;
      } finally {
        context.work = undefined;
        leftMs -= performance.now() - startedAt;
      }
    },
  };
}
