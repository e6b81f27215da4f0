import { createContext, Script } from "node:vm";

/** Runs work that may take for ever, and ends it: it would stand still for everything else of this thread. */
export interface TimeLimit {
  /** Throws `OutOfTime` when the time is over. */
  run<T>(work: () => T): T;
}

export class OutOfTime extends Error {}

export function createTimeLimit(limitMs: number): TimeLimit {
  const script = new Script("work()");
  const context = createContext({ work: () => {} });
  return {
    run<T>(work: () => T): T {
      try {
        context.work = work;
        return script.runInContext(context, { timeout: limitMs }) as T;
      } catch (error) {
        // by its code alone: an error of the context's own realm is no instance of this one's
        throw Object(error).code === "ERR_SCRIPT_EXECUTION_TIMEOUT" ? new OutOfTime() : error;
      } finally {
        context.work = undefined;
      }
    },
  };
}
