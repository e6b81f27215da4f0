import type { CallHeld } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { ToolProgress, ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/** How far a call has come, or how long it may be without an instance. */
export type CallEvent = { case: "progress"; value: ToolProgress } | { case: "held"; value: CallHeld };

/** Is told what happens to a call before its result; of its holding, whoever tells may wait until it is on its way. */
export type TellCall = (event: CallEvent) => Promise<void> | undefined;

/** Starts a call; the signal aborts when nobody waits for it any more. */
export type StartCall = (abandoned: AbortSignal, tell: TellCall) => Promise<ToolResult>;

/** Who waits for a call. */
export interface Waiter {
  signal: AbortSignal;
  tell: TellCall;
  /** Is told when somebody else waits for the call, too, and when nobody else does any more. */
  onOthers?: ((are: boolean) => void) | undefined;
}

interface SharedCall {
  result: Promise<ToolResult>;
  waiters: Set<Waiter>;
  /** For those who join later. */
  held?: CallEvent;
  /** Aborts when nobody waits for the result any more. */
  abandoned: AbortController;
}

export type Calls = ReturnType<typeof createCalls>;

/** The calls that this instance holds. A second call of a key joins the first. */
export function createCalls() {
  const callsByKey = new Map<string, SharedCall>();

  const isAbandoned = (key: string) => callsByKey.get(key)?.abandoned.signal.aborted === true;
  const open = (key: string, start: StartCall): SharedCall => {
    const abandoned = new AbortController();
    const waiters = new Set<Waiter>();
    const tell: TellCall = (event) => {
      if (event.case === "held") call.held = event;
      const told = [...waiters].map((waiter) => waiter.tell(event)).filter((each) => each !== undefined);
      return told.length === 0 ? undefined : Promise.all(told).then(() => {});
    };
    const result = start(abandoned.signal, tell).finally(() => callsByKey.delete(key));
    result.catch(() => {}); // those who still wait are told
    const call: SharedCall = { result, waiters, abandoned };
    callsByKey.set(key, call);
    return call;
  };

  return {
    /** Whether there is one to join. */
    has: (key: string) => callsByKey.has(key) && !isAbandoned(key),
    /**
     * An aborted signal ends this waiting; the call goes on while anybody waits for it. One that nobody waits for any more is not
     * joined: whoever asks then waits until it has ended, and starts anew.
     */
    async run(key: string, start: StartCall, given: Waiter): Promise<ToolResult> {
      const { signal } = given;
      while (isAbandoned(key)) await unlessAborted(ended(callsByKey.get(key)), signal);
      const call = callsByKey.get(key) ?? open(key, start);
      for (const { onOthers } of call.waiters) onOthers?.(true);
      const waiter = { ...given }; // of its own, should one ask twice
      if (call.waiters.size > 0) waiter.onOthers?.(true);
      call.waiters.add(waiter);
      if (call.held !== undefined) void waiter.tell(call.held);
      try {
        return await unlessAborted(call.result, signal);
      } finally {
        call.waiters.delete(waiter);
        if (call.waiters.size === 1) for (const { onOthers } of call.waiters) onOthers?.(false);
        if (call.waiters.size === 0 && signal.aborted) call.abandoned.abort(signal.reason);
      }
    },
  };
}

async function ended(call: SharedCall | undefined): Promise<void> {
  await call?.result.catch(() => {}); // told to those who waited for it
}
