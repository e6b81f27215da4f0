import { createContext, Script } from "node:vm";

/** Work that got less of a processor has not been tried. */
const LEAST_SHARE = 0.25;

export class OutOfTime extends Error {}

/** Runs work that may take for ever, and ends it: it would stand still for everything else of this thread. */
export function createTimeLimit(limitMs: number) {
  const script = new Script("work()");
  const context = createContext({ work: () => {} });

  function runOnce<T>(work: () => T, timeout = limitMs): T {
    try {
      context.work = work;
      return script.runInContext(context, { timeout }) as T;
    } catch (error) {
      // by its code alone: an error of the context's own realm is no instance of this one's
      throw Object(error).code === "ERR_SCRIPT_EXECUTION_TIMEOUT" ? new OutOfTime() : error;
    } finally {
      context.work = undefined;
    }
  }

  return {
    /**
     * Throws `OutOfTime` when the time is over. Where `beforeAgain` is given, work that was stopped because the machine gave nearly all
     * of the time to others is begun once more after it, with as much more time as it may have lacked: such work is not slow.
     */
    run<T>(work: () => T, beforeAgain?: () => void): T {
      const before = process.threadCpuUsage();
      try {
        return runOnce(work);
      } catch (error) {
        const { user, system } = process.threadCpuUsage(before);
        const isStarved = (user + system) / 1_000 < limitMs * LEAST_SHARE;
        if (!(error instanceof OutOfTime && isStarved && beforeAgain)) throw error;
        beforeAgain();
        return runOnce(work, limitMs / LEAST_SHARE);
      }
    },
  };
}
