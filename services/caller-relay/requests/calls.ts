import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

interface SharedCall {
  result: Promise<ToolResult>;
  waiters: number;
  /** Aborts when nobody waits for the result any more. */
  abandoned: AbortController;
}

/** The calls that this instance holds. A second call of a key joins the first. */
export interface Calls {
  has(key: string): boolean;
  /** An aborted signal ends this waiting; the call goes on while anybody waits for it. */
  run(key: string, start: (abandoned: AbortSignal) => Promise<ToolResult>, signal: AbortSignal): Promise<ToolResult>;
}

export function createCalls(): Calls {
  const callsByKey = new Map<string, SharedCall>();

  const forget = (key: string, call: SharedCall) => {
    if (callsByKey.get(key) === call) callsByKey.delete(key);
  };
  const open = (key: string, start: (abandoned: AbortSignal) => Promise<ToolResult>): SharedCall => {
    const abandoned = new AbortController();
    const result = start(abandoned.signal).finally(() => forget(key, call));
    result.catch(() => {}); // those who still wait are told
    const call: SharedCall = { result, waiters: 0, abandoned };
    callsByKey.set(key, call);
    return call;
  };

  return {
    has: (key) => callsByKey.has(key),
    async run(key, start, signal) {
      const call = callsByKey.get(key) ?? open(key, start);
      call.waiters += 1;
      try {
        return await unlessAborted(call.result, signal);
      } finally {
        call.waiters -= 1;
        if (call.waiters === 0) {
          forget(key, call);
          call.abandoned.abort(signal.reason);
        }
      }
    },
  };
}
