import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MsgRequest, StoredMsg } from "@nats-io/jetstream";
import { QueuedRunSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { appendFenced } from "#runtime/bus/append.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { isPassing } from "#runtime/bus/jetstream-errors.ts";
import { persist } from "#runtime/bus/link.ts";
import type { QueueEntry, SessionQueues } from "../session/queue.ts";
import { runSubjects } from "./run-subjects.ts";

/** The queues of sessions, in the stream of the runs, so that entries and logs share one order. */
export function createStreamQueues(bus: Bus): SessionQueues {
  async function read(query: MsgRequest): Promise<QueueEntry | undefined> {
    const get = () => bus.manager.streams.getMessage("TOOLBUS_RUNS", query);
    const message = await persist(bus.link, get, { what: "reading a session's queue", isPassing });
    return message === null ? undefined : entryFromMessage(message);
  }

  return {
    last: (sessionId) => read({ last_by_subj: runSubjects.queue(sessionId) }),
    async before({ queued }) {
      const position = Number(queued.previousEntrySequence);
      return position === 0 ? undefined : read({ seq: position });
    },
    async append(queued) {
      const outcome = await appendFenced(bus, {
        subject: runSubjects.queue(queued.sessionId),
        expectedLastSequence: Number(queued.previousEntrySequence),
        payload: toBinary(QueuedRunSchema, queued),
      });
      return outcome.kind;
    },
  };
}

function entryFromMessage({ data, seq }: StoredMsg): QueueEntry {
  return { queued: fromBinary(QueuedRunSchema, data), position: seq };
}
