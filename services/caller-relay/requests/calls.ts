import type { CallHeld } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { ToolProgress, ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/** How far a call has come, or how long it may be without an instance. */
export type CallEvent = { case: "progress"; value: ToolProgress } | { case: "held"; value: CallHeld };

/** Is told what happens to a call before its result; of its holding, whoever tells may wait until it is on its way. */
export type TellCall = (event: CallEvent) => Promise<void> | undefined;

/** Starts a call; the signal aborts when nobody waits for it any more. */
export type StartCall = (abandoned: AbortSignal, tell: TellCall) => Promise<ToolResult>;

interface SharedCall {
  result: Promise<ToolResult>;
  waiters: Set<TellCall>;
  /** For those who join later. */
  held?: CallEvent;
  /** Aborts when nobody waits for the result any more. */
  abandoned: AbortController;
}

/** The calls that this instance holds. A second call of a key joins the first. */
export interface Calls {
  has(key: string): boolean;
  /** An aborted signal ends this waiting; the call goes on while anybody waits for it. */
  run(key: string, start: StartCall, waiter: { signal: AbortSignal; tell: TellCall }): Promise<ToolResult>;
}

export function createCalls(): Calls {
  const callsByKey = new Map<string, SharedCall>();

  const forget = (key: string, call: SharedCall) => {
    if (callsByKey.get(key) === call) callsByKey.delete(key);
  };
  const open = (key: string, start: StartCall): SharedCall => {
    const abandoned = new AbortController();
    const waiters = new Set<TellCall>();
    const tell: TellCall = (event) => {
      if (event.case === "held") call.held = event;
      const told = [...waiters].map((waiter) => waiter(event)).filter((each) => each !== undefined);
      return told.length === 0 ? undefined : Promise.all(told).then(() => {});
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
      const waiter: TellCall = (event) => tell(event); // of its own, should two have the same
      call.waiters.add(waiter);
      if (call.held !== undefined) void waiter(call.held);
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
