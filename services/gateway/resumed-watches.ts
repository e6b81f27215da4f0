/**
 * Streams that outlive the instance that serves them, by `resumed` of the runtime.
 *
 * resumed-1  A stream whose request says where to begin and whose messages say where they stand is opened again, on any
 *     instance, behind what was passed on, when it breaks for a passing reason (`unavailable`: the instance fell silent,
 *     was killed, or stops).
 * resumed-2  No stored event is passed on twice, and none is left out: each opening asks for the one behind the last that was passed on.
 * resumed-3  Deltas go on behind the last that was passed on; where they cannot, the service says so with a reset.
 * resumed-4  An answer of the service that is not passing ends the stream, as do the client's leaving, its deadline, and the stop of this gateway.
 * resumed-5  A stream that nobody began to serve fails as any call does. One that broke is given up, with its last error, when
 *     nothing could be opened that stood for `patienceMs`.
 * resumed-6  A stream that was refused before its first message, as nothing can be read at present, ends with that.
 */

import { clone, create, type DescMessage, type DescMethod, type MessageShape } from "@bufbuild/protobuf";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import type { RunDelta } from "#gen/toolbus/run/v1/run_event_pb.ts";
import {
  type DeltaCursor,
  DeltaCursorSchema,
  RunService,
  type WatchRunRequest,
  WatchRunRequestSchema,
  type WatchRunResponse,
} from "#gen/toolbus/run/v1/run_service_pb.ts";
import { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { failureFromConnectError, isUnavailable } from "#runtime/failure/connect.ts";
import { deliveryOf } from "#runtime/rpc/nats/call/delivery.ts";
import { placeAfterUpdate } from "#runtime/rpc/watching/log-update.ts";
import { type Resumable, resumed } from "#runtime/rpc/watching/resumed.ts";

type Message = MessageShape<DescMessage>;

/** Every watch of a log takes `from_sequence` and tells its updates alike. */
type LogRequest = Message & { fromSequence?: bigint | undefined };
type LogResponse = Message & { readonly update: Parameters<typeof placeAfterUpdate>[0] };

const LOG_WATCHES: ReadonlySet<DescMethod> = new Set<DescMethod>([
  AuditService.method.watchAuditEvents,
  RunService.method.watchRuns,
  InboxService.method.watchInboxEvents,
  SpaceService.method.watchSpace,
]);

/** Where a client of a stream stands. */
export interface Place<Q = Message, R = Message> {
  /** What a stream has to ask for that goes on from here. */
  request(): Q;
  /** Whether the message leads on from here; what does not was passed on before. */
  passes(message: R): boolean;
}

export interface ResumedWatch<Q, R> extends Pick<Resumable<R>, "stopping"> {
  readonly place: Place<Q, R>;
  readonly open: (request: Q) => AsyncIterable<R>;
  /** Aborts when the client has left, or its time is up. */
  readonly signal: AbortSignal;
  readonly patienceMs?: number;
}

export async function* resumedWatch<Q, R>(stream: ResumedWatch<Q, R>): AsyncGenerator<R> {
  const { place, open, patienceMs = 60_000, ...ends } = stream;
  let hasBegun = false;
  let hasPassed = false;
  const isPassing = (error: unknown) => {
    hasBegun ||= deliveryOf(error) !== "NOT_SENT";
    if (!hasPassed && failureFromConnectError(error).reason === "BUS_UNAVAILABLE") return false; // resumed-6
    return hasBegun && isUnavailable(error); // resumed-4, resumed-5
  };
  for await (const message of resumed({ open: () => open(place.request()), isPassing, patienceMs, ...ends })) {
    hasBegun = true;
    hasPassed = true;
    if (place.passes(message)) yield message; // resumed-2
  }
}

/** The place of a stream's client; undefined when the stream cannot be resumed. */
export function placeOf(method: DescMethod, request: Message): Place | undefined {
  if (method === RunService.method.watchRun) return placeInRun(request as WatchRunRequest);
  return LOG_WATCHES.has(method) ? placeInLog(method.input, request) : undefined;
}

/** The place of a run's watcher. */
export function placeInRun(request: WatchRunRequest): Place<WatchRunRequest, WatchRunResponse> {
  return placeInLog(WatchRunRequestSchema, request, moveDeltas);
}

function moveDeltas(next: WatchRunRequest, { update }: WatchRunResponse): void {
  if (update.case === "event") {
    const committed = update.value.event.case === "turnCommitted" ? update.value.event.value.turn : 0;
    if (next.afterDelta !== undefined && next.afterDelta.turn <= committed) delete next.afterDelta;
  } else if (update.case === "delta") {
    if (isText(update.value)) next.afterDelta = cursorAt(update.value, update.value.index);
  } else if (update.case === "replaced") {
    if (update.value.deltaCount === 0)
      delete next.afterDelta; // nothing was shown that could be lacking
    else next.afterDelta = cursorAt(update.value, update.value.deltaCount - 1);
  }
}

/** Progress and logs of calls are told beside the model's words, and are not numbered with them. */
function isText({ delta }: RunDelta): boolean {
  return delta.case !== "progress" && delta.case !== "log";
}

function cursorAt({ turn, attempt }: { turn: number; attempt: number }, n: number): DeltaCursor {
  return create(DeltaCursorSchema, { turn, attempt, index: n });
}

/** `move` takes from what is passed on where else the client stands. */
function placeInLog<Q extends LogRequest, R extends LogResponse>(
  schema: DescMessage,
  request: Q,
  move: (next: Q, message: R) => void = () => {},
): Place<Q, R> {
  const copyOf = (message: Q) => clone(schema, message) as Q;
  const next = copyOf(request);
  return {
    request: () => copyOf(next),
    passes(message) {
      const place = placeAfterUpdate(message.update, undefined);
      if (place !== undefined) {
        if (next.fromSequence !== undefined && place <= next.fromSequence) return false; // resumed-2
        next.fromSequence = place;
      }
      move(next, message);
      return true;
    },
  };
}
