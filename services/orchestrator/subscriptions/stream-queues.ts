import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MsgRequest } from "@nats-io/jetstream";
import { QueuedRunSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import { appendFenced } from "#runtime/bus/append.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { isPassing } from "#runtime/bus/jetstream-errors.ts";
import { persist } from "#runtime/bus/link.ts";
import { readSubject } from "#runtime/bus/read.ts";
import type { QueueEntry, QueuePages, SessionQueues } from "../session/queue.ts";
import { runSubjects } from "./run-subjects.ts";

/** How far back in the stream the latest entries are looked for first; doubled until some are found. */
const firstWidth = 1_024;

/** The queues of sessions, in the stream of the runs, so that entries and logs share one order. */
export function createStreamQueues(bus: Bus): SessionQueues & QueuePages {
  async function read(query: MsgRequest): Promise<QueueEntry | undefined> {
    const get = () => bus.manager.streams.getMessage("TOOLBUS_RUNS", query);
    const message = await persist(bus.link, get, { what: "reading a session's queue", isPassing });
    return message === null ? undefined : entryFromStored(message.data, message.seq);
  }

  /** The stream is read forward, and the latest entries are wanted first: so in pieces, from the end on. */
  async function latest(before: number | undefined): Promise<QueueEntry[]> {
    let to = before ?? ((await read({ last_by_subj: runSubjects.everyQueue }))?.position ?? 0) + 1;
    for (let width = firstWidth; to > 1; width *= 2) {
      const from = Math.max(1, to - width);
      const found: QueueEntry[] = [];
      for await (const { data, sequence } of readSubject(bus, runSubjects.everyQueue, { fromSequence: from })) {
        if (sequence >= to) break;
        found.push(entryFromStored(data, sequence));
      }
      if (found.length > 0) return found.reverse();
      to = from;
    }
    return [];
  }

  async function before({ queued }: QueueEntry): Promise<QueueEntry | undefined> {
    const position = Number(queued.previousEntrySequence);
    return position === 0 ? undefined : read({ seq: position });
  }

  return {
    last: (sessionId) => read({ last_by_subj: runSubjects.queue(sessionId) }),
    before,
    async beforePosition(sessionId, position) {
      const entry = await read({ seq: position });
      return entry?.queued.sessionId === sessionId ? before(entry) : undefined;
    },
    latest,
    async append(queued) {
      const outcome = await appendFenced(bus, {
        subject: runSubjects.queue(queued.sessionId),
        expectedLastSequence: Number(queued.previousEntrySequence),
        payload: toBinary(QueuedRunSchema, queued),
      });
      return outcome.kind === "appended" ? { kind: "appended", position: outcome.sequence } : outcome;
    },
  };
}

function entryFromStored(data: Uint8Array, position: number): QueueEntry {
  return { queued: fromBinary(QueuedRunSchema, data), position };
}
