import type { ToolProgress, ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/** Is told how far a call has come. */
export type TellProgress = (progress: ToolProgress) => void;

/** Starts a call; the signal aborts when nobody waits for it any more. */
export type StartCall = (abandoned: AbortSignal, tell: TellProgress) => Promise<ToolResult>;

interface SharedCall {
  result: Promise<ToolResult>;
  waiters: Set<TellProgress>;
  /** Aborts when nobody waits for the result any more. */
  abandoned: AbortController;
}

/** The calls that this instance holds. A second call of a key joins the first. */
export interface Calls {
  has(key: string): boolean;
  /** An aborted signal ends this waiting; the call goes on while anybody waits for it. */
  run(key: string, start: StartCall, waiter: { signal: AbortSignal; tell: TellProgress }): Promise<ToolResult>;
}

export function createCalls(): Calls {
  const callsByKey = new Map<string, SharedCall>();

  const forget = (key: string, call: SharedCall) => {
    if (callsByKey.get(key) === call) callsByKey.delete(key);
  };
  const open = (key: string, start: StartCall): SharedCall => {
    const abandoned = new AbortController();
    const waiters = new Set<TellProgress>();
    const tell: TellProgress = (progress) => {
      for (const waiter of waiters) waiter(progress);
    };
    const result = start(abandoned.signal, tell).finally(() => forget(key, call));
    result.catch(() => {}); // those who still wait are told
    const call: SharedCall = { result, waiters, abandoned };
    callsByKey.set(key, call);
    return call;
  };

  return {
    has: (key) => callsByKey.has(key),
    async run(key, start, { signal, tell }) {
      const call = callsByKey.get(key) ?? open(key, start);
      const waiter: TellProgress = (progress) => tell(progress); // one of its own
      call.waiters.add(waiter);
      try {
        return await unlessAborted(call.result, signal);
      } finally {
        call.waiters.delete(waiter);
        if (call.waiters.size === 0) {
          forget(key, call);
          call.abandoned.abort(signal.reason);
        }
      }
    },
  };
}
