import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallerToolCancellationReason, CallerToolRequest } from "#gen/toolbus/caller/v1/caller_pb.ts";
import type { WatchCallerResponseSchema } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";

/** Why a caller's stream ended: it went away, a newer one of the session took its place, or this instance stops. */
export type StreamEnd = "detached" | "replaced" | "stopping";

/** What became of a request that was to be sent. `absent`: there is no such stream, and nothing was sent. */
export type Carriage = { kind: "ended"; end: StreamEnd } | { kind: "absent" };

/** What a caller is told on its stream. */
export type CallerEvent = NonNullable<MessageInitShape<typeof WatchCallerResponseSchema>["event"]>;

/** A request on its way to the caller. */
export interface Emission extends Disposable {
  /** Resolves when the stream that carries it ends. Disposing takes the request back if it was not sent. */
  readonly ended: Promise<StreamEnd>;
}

/** The open stream of one caller, in this process. */
export interface Attachment {
  readonly id: string;
  readonly sessionId: string;
  /** Of its record; undefined until that is written. */
  revision: number | undefined;
  readonly ended: Promise<StreamEnd>;
  /** Refuses a request that the stream already carries, and more than it may carry at once. */
  emit(request: CallerToolRequest): Emission;
  /** LOOP-15: says that nobody waits for a request any more, also for one of an earlier stream; one that was not sent is taken back. */
  cancel(requestId: string, reason: CallerToolCancellationReason): void;
  /** What to send, in order, until the stream ends. */
  events(): AsyncGenerator<CallerEvent>;
  /** Only the first end counts. */
  end(why: StreamEnd): void;
}

export interface Attachments {
  open(sessionId: string): Attachment;
  find(id: string): Attachment | undefined;
  all(): Attachment[];
  /** Sends a request over a stream here, and stays until that ends; an aborted signal takes the request back. */
  carry(id: string, request: CallerToolRequest, signal: AbortSignal): Promise<Carriage>;
  /** Ends what the session has here but for the attachment that its record names, if that record is newer. */
  keepOnly(sessionId: string, id: string, revision: number): void;
}

const mostRequests = 1_000;

export function createAttachments(): Attachments {
  const attachmentsById = new Map<string, Attachment>();
  return {
    open(sessionId) {
      const attachment = createAttachment(sessionId);
      attachmentsById.set(attachment.id, attachment);
      void attachment.ended.then(() => attachmentsById.delete(attachment.id));
      return attachment;
    },
    find: (id) => attachmentsById.get(id),
    all: () => [...attachmentsById.values()],
    async carry(id, request, signal) {
      const attachment = attachmentsById.get(id);
      if (attachment === undefined) return { kind: "absent" };
      using emission = attachment.emit(request);
      return { kind: "ended", end: await unlessAborted(emission.ended, signal) };
    },
    keepOnly(sessionId, id, revision) {
      for (const other of attachmentsById.values()) {
        if (other.sessionId !== sessionId || other.id === id || other.revision === undefined) continue;
        if (other.revision < revision) other.end("replaced");
      }
    },
  };
}

function createAttachment(sessionId: string): Attachment {
  const ended = Promise.withResolvers<StreamEnd>();
  const carried = new Set<string>();
  const unsent: CallerEvent[] = [];
  let isOpen = true;
  let wake = () => {};

  /** Whether it was there. */
  function takeBack(requestId: string): boolean {
    const place = unsent.findIndex((event) => event.case === "request" && event.value?.requestId === requestId);
    if (place >= 0) unsent.splice(place, 1);
    return place >= 0;
  }

  function emitEvent(event: CallerEvent): void {
    unsent.push(event);
    wake();
  }

  return {
    id: randomUUID(),
    sessionId,
    revision: undefined,
    ended: ended.promise,
    emit(request) {
      const { requestId } = request;
      if (carried.has(requestId))
        refuse("aborted", `request ${requestId} is on its way by another instance`, { reason: "CALL_IN_PROGRESS" });
      if (carried.size >= mostRequests)
        refuse("resource_exhausted", `the caller has ${mostRequests} requests open`, { reason: "CALLER_BUSY" });
      carried.add(requestId);
      emitEvent({ case: "request", value: request });
      return {
        ended: ended.promise,
        [Symbol.dispose]() {
          carried.delete(requestId);
          takeBack(requestId);
        },
      };
    },
    cancel(requestId, reason) {
      if (!takeBack(requestId)) emitEvent({ case: "canceled", value: { requestId, reason } });
    },
    async *events() {
      while (isOpen) {
        const event = unsent.shift();
        if (event) yield event;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    end(why) {
      isOpen = false;
      ended.resolve(why);
      wake();
    },
  };
}
