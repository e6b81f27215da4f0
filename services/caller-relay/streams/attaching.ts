import { Failure, refuse } from "#runtime/failure/failure.ts";
import type { Clock } from "#runtime/time/clock.ts";
import type { Attachment } from "./attachment.ts";
import type { Attachments } from "./attachments.ts";
import {
  type CallerStream,
  endStream,
  type StreamRecords,
  type StreamState,
  streamsOf,
  withStream,
} from "./stream-record.ts";

export interface AttachingParts {
  attachments: Attachments;
  records: StreamRecords;
  clock: Clock;
  instance: string;
  stateOf: (stream: CallerStream, sessionId: string) => Promise<StreamState>;
}

const MOST_STREAMS = 16;

/**
 * Opens one more stream of the session, in place of one of the same name. It exists here before its record does, so that whoever
 * reads the record finds it. Disposing ends it.
 */
export async function attachCaller(
  parts: AttachingParts,
  sessionId: string,
  { streamId, graceMs }: Pick<CallerStream, "streamId" | "graceMs">,
): Promise<AsyncDisposable & { readonly attachment: Attachment }> {
  const { attachments, records, instance } = parts;
  const attachment = attachments.open(sessionId);
  const stream: CallerStream = { instance, attachmentId: attachment.id, streamId, graceMs };
  const enter = () =>
    records.update(sessionId, (record) => {
      const open = withStream(sessionId, record, stream);
      return open.streams.length <= MOST_STREAMS ? open : refuseMore(sessionId);
    });
  try {
    const { revision } = await enter().catch(async (error: unknown) => {
      const isFull = error instanceof Failure && error.reason === "CALLER_BUSY";
      if (isFull && (await endLost(parts, sessionId))) return enter();
      throw error;
    });
    attachment.revision = revision;
    await endIfReplaced(records, attachment); // what came between was told before the revision was known
    return {
      attachment,
      async [Symbol.asyncDispose]() {
        attachment.end("detached");
        await endStream(parts, sessionId, stream);
      },
    };
  } catch (error) {
    attachment.end("detached");
    throw error;
  }
}

/** Ends what the record names and is no more, as its instance was killed or could not write; gives whether there was such a stream. */
async function endLost(parts: AttachingParts, sessionId: string): Promise<boolean> {
  const named = streamsOf((await parts.records.read(sessionId))?.value);
  const states = await Promise.all(named.map((stream) => parts.stateOf(stream, sessionId)));
  const lost = named.filter((_, index) => states[index] !== "attached"); // one that is silent is taken for dead
  for (const stream of lost) await endStream(parts, sessionId, stream);
  return lost.length > 0;
}

function refuseMore(sessionId: string): never {
  const message = `the caller of session ${sessionId} has ${MOST_STREAMS} streams open: close one, or give a stream that is opened again its stream_id`;
  return refuse("resource_exhausted", message, { reason: "CALLER_BUSY" });
}

/** Ends a stream that its record does not name any more. */
export async function endIfReplaced(records: StreamRecords, attachment: Attachment): Promise<void> {
  if (attachment.revision === undefined) return;
  const found = await records.read(attachment.sessionId);
  const isNamed = streamsOf(found?.value).some(({ attachmentId }) => attachmentId === attachment.id);
  if (!isNamed) attachment.end("replaced");
}
