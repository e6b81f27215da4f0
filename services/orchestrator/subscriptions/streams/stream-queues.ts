import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MsgRequest, StoredMsg } from "@nats-io/jetstream";
import { QueuedRunSchema } from "#gen/toolbus/internal/run/v1/queue_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { retryOnBus } from "#runtime/bus/link/link.ts";
import { appendFenced } from "#runtime/bus/streams/append/append.ts";
import { readSubject } from "#runtime/bus/streams/read.ts";
import { readRecord } from "#runtime/bus/streams/record.ts";
import type { QueueEntry, QueuePages, SessionQueues } from "../../sessions/queue.ts";
import { runSubjects } from "../run-subjects.ts";
import { placed, type RecordMessage } from "./stream-run-log.ts";

/** How far back in the stream the search for the latest entries begins; doubled until some are found. */
const firstWidth = 1_024;

/** The queues of sessions, in the stream of the runs, so that entries and logs share one order. */
export function createStreamQueues(bus: Bus): SessionQueues & QueuePages {
  async function readMessage(query: MsgRequest): Promise<StoredMsg | null> {
    const get = () => bus.manager.streams.getMessage("TOOLBUS_RUNS", query);
    return retryOnBus(bus.link, get, { what: "reading a session's queue" });
  }

  async function read(query: MsgRequest): Promise<QueueEntry | undefined> {
    const message = await readMessage(query);
    return message === null ? undefined : entryFromStored(bus, placed(message));
  }

  /** The last entry that can be read. */
  async function last(sessionId: string): Promise<QueueEntry | undefined> {
    const subject = runSubjects.queue(sessionId);
    const message = await readMessage({ last_by_subj: subject });
    if (message === null) return undefined;
    const entry = entryFromStored(bus, placed(message));
    return entry ?? (await readableOf(subject, 1)).at(-1);
  }

  async function readableOf(subject: string, fromSequence: number): Promise<QueueEntry[]> {
    const messages = await Array.fromAsync(readSubject(bus, subject, { fromSequence }));
    return messages.flatMap((message) => entryFromStored(bus, message) ?? []);
  }

  /** Where the last message behind an entry stands, when nobody can read any of them; undefined when an entry stands there. */
  async function unreadableBehind(subject: string, position: number): Promise<number | undefined> {
    const message = await readMessage({ last_by_subj: subject });
    if (message === null || message.seq <= position) return undefined;
    return (await readableOf(subject, position + 1)).length === 0 ? message.seq : undefined;
  }

  /** The stream is read forward, and the latest entries are wanted first: so in pieces, from the end on. */
  async function latest(before: number | undefined): Promise<QueueEntry[]> {
    let to = before ?? ((await readMessage({ last_by_subj: runSubjects.everyQueue }))?.seq ?? 0) + 1;
    for (let width = firstWidth; to > 1; width *= 2) {
      const from = Math.max(1, to - width);
      const found: QueueEntry[] = [];
      const window = { fromSequence: from, toSequence: to - 1 };
      for await (const message of readSubject(bus, runSubjects.everyQueue, window)) {
        const entry = entryFromStored(bus, message);
        if (entry !== undefined) found.push({ ...entry, writtenAtMs: message.time.getTime() });
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
    last,
    before,
    async beforePosition(sessionId, position) {
      const entry = await read({ seq: position });
      return entry?.queued.sessionId === sessionId ? before(entry) : undefined;
    },
    latest,
    async append(queued) {
      const subject = runSubjects.queue(queued.sessionId);
      const payload = toBinary(QueuedRunSchema, queued);
      let behind: number | undefined = Number(queued.previousEntrySequence);
      while (behind !== undefined) {
        const outcome = await appendFenced(bus, { subject, expectedLastSequence: behind, payload });
        if (outcome.kind === "appended") return { kind: "appended", position: outcome.sequence };
        behind = await unreadableBehind(subject, behind);
      }
      return { kind: "conflict" };
    },
  };
}

/** Undefined for one that cannot be read: it is no run's. */
export function entryFromStored(bus: Bus, message: RecordMessage): QueueEntry | undefined {
  return readRecord(bus, message, () => {
    const queued = fromBinary(QueuedRunSchema, message.data);
    return queued.runId === "" ? undefined : { queued, position: message.sequence };
  });
}
