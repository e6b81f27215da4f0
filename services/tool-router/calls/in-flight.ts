import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { CallToolResponse } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { TransientMap } from "#runtime/collections/transient-map.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { type Asker, isOwner } from "#runtime/failure/session-owner.ts";
import { type Answer, canceled } from "./answers/answer.ts";
import { type CallIdentity, differencesOfRequests, refuseForeign } from "./records/call-identity.ts";

/** What happens in a call: progress, logs, then its one result. */
export type CallEvent = Exclude<CallToolResponse["event"], { case: undefined }>;

export interface FlightControl {
  /** Aborts when everybody who waited for the call has gone. */
  readonly signal: AbortSignal;
  readonly emit: (event: CallEvent) => void;
}

export interface Passenger {
  readonly callId: string;
  /** What the call is: a second call of the same id must be the same call. */
  readonly identity: CallIdentity;
  readonly signal: AbortSignal;
  /** Whether an abort means that the passenger was lost instead of having cancelled: then the call goes on without it. */
  readonly isLost: () => boolean;
}

type News = { kind: "event"; event: CallEvent } | { kind: "failed"; error: unknown };

interface Flight {
  readonly identity: CallIdentity;
  readonly control: AbortController;
  readonly listeners: Set<(news: News) => void>;
  readonly landed: Promise<void>;
}

class CallCanceled extends Failure {}
const MAX_UNREAD = 1_000;
const MAX_CANCELED = 10_000;

/** The calls in flight in this process. Who calls under an id that is in flight joins that call. */
export class Flights {
  readonly #flights = new TransientMap<Flight>();
  /** By call: on whose behalf it was canceled. */
  readonly #canceled = new Map<string, Set<Asker>>();

  /** The session of a call that is in flight here. */
  sessionOf(callId: string): string | undefined {
    return this.#flights.get(callId)?.identity.sessionId;
  }

  /** Ends a call for all who wait for it; whether it was in flight here. It is remembered for a while. */
  cancel(callId: string, asker: Asker): boolean {
    this.#canceled.set(callId, (this.#canceled.get(callId) ?? new Set()).add(asker));
    if (this.#canceled.size > MAX_CANCELED) this.#canceled.delete(this.#canceled.keys().next().value ?? "");
    const flight = this.#flights.get(callId);
    flight?.control.abort(new CallCanceled("canceled", "the call was canceled", { reason: "CANCELED" }));
    return flight !== undefined;
  }

  /** Whether the call of a principal was, by itself or by one of the suite's own services. */
  wasCanceled(callId: string, principal: string): boolean {
    const askers = this.#canceled.get(callId);
    return askers !== undefined && [...askers].some((asker) => isOwner(principal, asker));
  }

  async *join(passenger: Passenger, start: (control: FlightControl) => Promise<Answer>): AsyncGenerator<CallEvent> {
    const { callId, identity, signal } = passenger;
    while (this.#flights.get(callId)?.control.signal.aborted) await this.#flights.get(callId)?.landed; // it takes nobody
    signal.throwIfAborted();
    const flight = this.#flights.get(callId) ?? this.#depart(passenger, start);
    const differences = flight.identity === identity ? [] : differencesOfRequests(flight.identity, identity);
    if (differences.length > 0) refuseForeign(callId, differences);
    const inbox = openInbox();
    const onAbort = () => inbox.push({ kind: "failed", error: signal.reason });
    flight.listeners.add(inbox.push);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      for (;;) {
        const news = await inbox.next();
        if (news.kind === "failed") throw news.error;
        yield news.event;
        if (news.event.case === "result") return;
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      flight.listeners.delete(inbox.push);
      const isDeserted = flight.listeners.size === 0 && this.#flights.get(callId) === flight;
      if (isDeserted && !(signal.aborted && passenger.isLost())) flight.control.abort(signal.reason);
    }
  }

  #depart(passenger: Passenger, start: (control: FlightControl) => Promise<Answer>): Flight {
    const control = new AbortController();
    const landing = Promise.withResolvers<void>();
    const flight: Flight = {
      identity: passenger.identity,
      control,
      listeners: new Set(),
      landed: landing.promise,
    };
    const tell = (news: News) => {
      for (const listener of [...flight.listeners]) listener(news);
    };
    this.#flights.set(passenger.callId, flight);
    const emit = (event: CallEvent) => tell({ kind: "event", event });
    void start({ signal: control.signal, emit })
      .then(
        (answer): News => ({ kind: "event", event: { case: "result", value: answer } }),
        (error: unknown): News => newsOfFailure(error, control.signal),
      )
      .then((news) => {
        this.#flights.delete(passenger.callId);
        landing.resolve();
        tell(news);
      });
    return flight;
  }
}

/** What ends with the reason of its cancellation had not begun: execution tells of its own what came of it. */
function newsOfFailure(error: unknown, { reason, aborted }: AbortSignal): News {
  const isCanceled = aborted && error === reason && reason instanceof CallCanceled;
  return isCanceled
    ? { kind: "event", event: { case: "result", value: canceled(Effect.PURE) } }
    : { kind: "failed", error };
}

/** News in order. A reader that does not keep up loses progress and logs, never the end. */
function openInbox() {
  const unread: News[] = [];
  let arrived = Promise.withResolvers<void>();
  return {
    push(news: News): void {
      const isPassing = news.kind === "event" && news.event.case !== "result";
      if (isPassing && unread.length >= MAX_UNREAD) return;
      unread.push(news);
      arrived.resolve();
    },
    async next(): Promise<News> {
      while (unread.length === 0) {
        arrived = Promise.withResolvers<void>();
        await arrived.promise;
      }
      return unread.shift()!;
    },
  };
}
