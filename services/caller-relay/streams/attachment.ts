import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { CallerToolCancellationReason, type CallerToolRequest } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { WatchCallerResponseSchema } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { createEventQueue } from "#runtime/collections/feeds/event-queue.ts";
import { Failure, refuse } from "#runtime/failure/failure.ts";
import { startTimer } from "#runtime/time/timer.ts";

/** Why a caller's stream ended: it went away, another one of its name took its place, its session was closed, or this instance stops. */
export type StreamEnd = "detached" | "replaced" | "closed" | "stopping";

/** What became of a request on its stream: the stream ended, or the caller answered when nobody held the call. */
export type EmissionEnd = StreamEnd | "answered";

/** What a caller is told on its stream. */
type CallerEvent = NonNullable<MessageInitShape<typeof WatchCallerResponseSchema>["event"]>;

/** A request on its way to the caller. */
export interface Emission extends Disposable {
  /** Resolves when the stream that carries it ends. Disposing takes the request back if it was not sent. */
  readonly ended: Promise<EmissionEnd>;
  /** Its holder has died: the request waits a while for the next one, then the caller is told that nobody waits for it any more. */
  orphan(): void;
}

export type Attachment = ReturnType<typeof createAttachment>;

/** A request that the stream carries, from one holder to the next. */
interface Carried {
  holder: string;
  held: PromiseWithResolvers<EmissionEnd>;
  isAnswered: boolean;
  /** Stops its waiting for the next holder; undefined while it has one. */
  stopWaiting?: (() => void) | undefined;
}

const mostRequests = 1_000;
/** Longer than a router needs to notice that an instance is lost, and to ask another one. */
const ORPHANED_MS = 5_000;

/** The open stream of one caller, in this process. */
export function createAttachment(sessionId: string) {
  const ended = Promise.withResolvers<StreamEnd>();
  const carried = new Map<string, Carried>();
  const unsent = createEventQueue<CallerEvent>({ limit: Number.POSITIVE_INFINITY });
  let ending: StreamEnd | undefined;

  /** Whether it was there. */
  const takeBack = (requestId: string): boolean =>
    unsent.remove((event) => event.case === "request" && event.value?.requestId === requestId);

  /**
   * LOOP-15: says that nobody waits for a request any more, also for one of an earlier stream; one that was not sent is taken back. A
   * holder whose request was taken over by another one is not heard.
   */
  function cancel(requestId: string, reason: CallerToolCancellationReason, holder: string): void {
    if ((carried.get(requestId)?.holder ?? holder) !== holder) return;
    if (!takeBack(requestId)) unsent.push({ case: "canceled", value: { requestId, reason } });
  }

  function emissionOf(requestId: string, request: Carried): Emission {
    const { held } = request;
    const isOurs = () => carried.get(requestId) === request && request.held === held;
    if (request.isAnswered) held.resolve("answered");
    if (ending !== undefined) held.resolve(ending);
    return {
      ended: held.promise,
      orphan() {
        if (!isOurs()) return;
        request.stopWaiting = startTimer(ORPHANED_MS, () => {
          carried.delete(requestId);
          if (!request.isAnswered) cancel(requestId, CallerToolCancellationReason.CANCELED, request.holder);
        });
      },
      [Symbol.dispose]() {
        if (!isOurs() || request.stopWaiting !== undefined) return;
        carried.delete(requestId);
        takeBack(requestId);
      },
    };
  }

  return {
    id: randomUUID(),
    sessionId,
    /** Of its record; undefined until that is written. */
    revision: undefined as number | undefined,
    ended: ended.promise,
    /** `holder` is the instance that holds the call. Refuses a request that the stream already carries, and more than it may carry at once. */
    emit(request: CallerToolRequest, holder: string): Emission {
      const { requestId } = request;
      if (carried.has(requestId)) throw elsewhere(requestId);
      if (carried.size >= mostRequests)
        refuse("resource_exhausted", `the caller has ${mostRequests} requests open`, { reason: "CALLER_BUSY" });
      const taken: Carried = { holder, held: Promise.withResolvers(), isAnswered: false };
      carried.set(requestId, taken);
      unsent.push({ case: "request", value: request });
      return emissionOf(requestId, taken);
    },
    /** Takes over a request that the stream carries, from a holder that is lost; undefined if it carries none of that id. */
    adopt(requestId: string, holder: string): Emission | undefined {
      const request = carried.get(requestId);
      if (request === undefined) return undefined;
      request.stopWaiting?.();
      request.stopWaiting = undefined;
      request.held.promise.catch(() => {}); // mostly nobody is left to hear it
      request.held.reject(elsewhere(requestId));
      request.held = Promise.withResolvers();
      request.holder = holder;
      return emissionOf(requestId, request);
    },
    /** Whether it carries the request and waits for its next holder. */
    isOrphaned: (requestId: string) => carried.get(requestId)?.stopWaiting !== undefined,
    /** The request was answered while it had no holder: the next one is told. */
    markAnswered(requestId: string): void {
      const request = carried.get(requestId);
      if (request === undefined) return;
      request.isAnswered = true;
      request.held.resolve("answered");
    },
    cancel,
    /** What to send, in order, until the stream ends. */
    events: unsent as AsyncIterable<CallerEvent>,
    /** Only the first end counts. */
    end(why: StreamEnd): void {
      ending ??= why;
      for (const { held, stopWaiting } of carried.values()) {
        stopWaiting?.();
        held.resolve(ending);
      }
      ended.resolve(ending);
      unsent.remove(() => true);
      unsent.end();
    },
  };
}

function elsewhere(requestId: string): Failure {
  return new Failure("aborted", `request ${requestId} is on its way by another instance`, {
    reason: "CALL_IN_PROGRESS",
  });
}
