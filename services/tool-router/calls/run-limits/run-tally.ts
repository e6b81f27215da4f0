export type RunTally = ReturnType<typeof createRunTally>;

const MOST_RUNS = 2_000;
const MOST_CALLS = 50_000;

/** Which calls of runs this router has let go on; of the runs that called last. */
export function createRunTally(mostRuns = MOST_RUNS, mostCalls = MOST_CALLS) {
  const callsByRun = new Map<string, Set<string>>();
  let size = 0;

  function forgetOldest(): void {
    const [run, calls] = callsByRun.entries().next().value!;
    callsByRun.delete(run);
    size -= calls.size;
  }

  return {
    /** Whether the call is counted by now, or already was; false when the run has its number of calls. */
    count(run: string, callId: string, most: number): boolean {
      const calls = callsByRun.get(run) ?? new Set();
      if (calls.has(callId)) return true;
      if (calls.size >= most) return false;
      calls.add(callId);
      size += 1;
      callsByRun.delete(run); // who called last stands last
      callsByRun.set(run, calls);
      while (callsByRun.size > mostRuns || (size > mostCalls && callsByRun.size > 1)) forgetOldest();
      return true;
    },
  };
}
