import { addAbortListener } from "node:events";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallToolResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { createEventQueue, type EventQueue } from "#runtime/collections/feeds/event-queue.ts";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { TransientMap } from "#runtime/collections/maps/transient-map.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { type Answer, canceled } from "./answers/answer.ts";
import { type CallIdentity, differencesOfRequests, refuseForeign } from "./records/call-identity.ts";

/** What a call sends: progress, logs, then its one result. */
export type CallEvent =
  | Exclude<CallToolResponse["event"], { case: undefined | "result" }>
  | { case: "result"; value: Answer };

export interface CallControl {
  /** Aborts when nobody waits for the call any more. */
  readonly signal: AbortSignal;
  readonly emit: (event: CallEvent) => void;
}

export interface CarryOutControl extends CallControl {
  /** Whether the call was canceled on behalf of the principal, or by one of the suite's own services. */
  readonly isCanceledFor: (principal: string) => boolean;
  /** Says by which reference the call's tool is known: whoever joins may name it so, too. */
  readonly onResolved: (reference: string) => void;
}

export interface CallWaiter {
  readonly callId: string;
  /** A second request with the same call id has to ask for the same. */
  readonly identity: CallIdentity;
  readonly signal: AbortSignal;
  /** Whether an abort means that the waiter was lost, and has not canceled; then the call goes on without it. */
  readonly isLost: () => boolean;
}

interface InFlightCall {
  readonly identity: CallIdentity;
  readonly control: AbortController;
  readonly listeners: Set<EventQueue<CallEvent>>;
  readonly finished: Promise<void>;
  /** Once the name is resolved. */
  reference?: string;
  /** Is told of its events until then, and is none of those for whom it goes on. */
  observer?: { readonly onEvent: (event: CallEvent) => void; readonly untilMs: number };
}

class CallCanceled extends Failure {}
/** A reader that does not keep up loses progress and logs, never the end. */
const MAX_UNREAD = 1_000;
const MAX_CANCELED = 10_000;

/** The calls in flight in this process. A request whose call id is in flight joins that call. */
export class InFlightCalls {
  readonly #calls = new TransientMap<InFlightCall>();
  /** On whose behalf a call was canceled, by call; empty for a service by itself. */
  readonly #canceled = new BoundedMap<string, Set<string>>(MAX_CANCELED);

  /** The session of a call that is in flight here. */
  sessionOf(callId: string): string | undefined {
    return this.#calls.get(callId)?.identity.sessionId;
  }

  /** Ends a call for all who wait for it. Returns whether it was in flight here. Remembers the cancellation for a while. */
  cancel(callId: string, caller: Caller): boolean {
    this.#canceled.set(callId, (this.#canceled.get(callId) ?? new Set()).add(caller.principal ?? ""));
    const call = this.#calls.get(callId);
    call?.control.abort(new CallCanceled("canceled", "the call was canceled", { reason: "CANCELED" }));
    return call !== undefined;
  }

  #isCanceledFor(callId: string, principal: string): boolean {
    const by = this.#canceled.get(callId);
    return by !== undefined && (by.has("") || by.has(principal));
  }

  /** Tells of the events of a call that is in flight here, for so long, or until another observer takes its place. */
  observe(callId: string, onEvent: (event: CallEvent) => void, forMs: number): void {
    const call = this.#calls.get(callId);
    if (call) call.observer = { onEvent, untilMs: performance.now() + forMs };
  }

  async *join(waiter: CallWaiter, start: (control: CarryOutControl) => Promise<Answer>): AsyncGenerator<CallEvent> {
    const { callId, identity, signal } = waiter;
    for (let ending = this.#calls.get(callId); ending?.control.signal.aborted; ending = this.#calls.get(callId))
      await unlessAborted(ending.finished, signal); // nobody can join it
    signal.throwIfAborted();
    const call = this.#calls.get(callId) ?? this.#start(waiter, start);
    const differences = call.identity === identity ? [] : differencesOfRequests(call.identity, asNamed(call, identity));
    if (differences.length > 0) refuseForeign(callId, differences);
    const unread = createEventQueue<CallEvent>({ limit: MAX_UNREAD });
    call.listeners.add(unread);
    using _ = addAbortListener(signal, () => unread.end(signal.reason));
    try {
      yield* unread;
    } finally {
      call.listeners.delete(unread);
      const isDeserted = call.listeners.size === 0 && this.#calls.get(callId) === call;
      if (isDeserted && !(signal.aborted && waiter.isLost())) call.control.abort(signal.reason);
    }
  }

  #start(waiter: CallWaiter, start: (control: CarryOutControl) => Promise<Answer>): InFlightCall {
    const control = new AbortController();
    const finishing = Promise.withResolvers<void>();
    const call: InFlightCall = {
      identity: waiter.identity,
      control,
      listeners: new Set(),
      finished: finishing.promise,
    };
    this.#calls.set(waiter.callId, call);
    const emit = (event: CallEvent) => {
      for (const listener of call.listeners) listener.push(event);
      if (call.observer && performance.now() < call.observer.untilMs) call.observer.onEvent(event);
    };
    const onResolved = (reference: string) => {
      call.reference = reference;
    };
    const isCanceledFor = (principal: string) => this.#isCanceledFor(waiter.callId, principal);
    const finish = (value: Answer | undefined, error?: unknown) => {
      this.#calls.delete(waiter.callId);
      finishing.resolve();
      for (const listener of call.listeners) {
        if (value !== undefined) listener.push({ case: "result", value });
        listener.end(error);
      }
    };
    const fail = (error: unknown) =>
      neverBegan(error, control.signal) ? finish(canceled(Effect.PURE)) : finish(undefined, error);
    void start({ signal: control.signal, emit, isCanceledFor, onResolved }).then(finish, fail);
    return call;
  }
}

/** A record has the reference alone: who goes by it asks for the same. */
function asNamed({ identity, reference }: InFlightCall, asked: CallIdentity): CallIdentity {
  return asked.name === reference ? { ...asked, name: identity.name } : asked;
}

/** If the error is the reason of the cancellation, the call never began: an execution returns an answer of its own. */
function neverBegan(error: unknown, { reason, aborted }: AbortSignal): boolean {
  return aborted && error === reason && reason instanceof CallCanceled;
}
