import type { Clock } from "#runtime/time/clock.ts";
import type { Attachment, Attachments } from "./attachments.ts";
import { type AttachedRecord, endStream, type StreamRecords } from "./stream-record.ts";

export interface AttachingParts {
  attachments: Attachments;
  records: StreamRecords;
  clock: Clock;
  instance: string;
}

export interface AttachedCaller extends AsyncDisposable {
  readonly attachment: Attachment;
}

/**
 * Makes a new stream the session's one, in place of any other. It exists here before its record does, so that whoever reads
 * the record finds it. Disposing ends it.
 */
export async function attachCaller(parts: AttachingParts, sessionId: string, graceMs: number): Promise<AttachedCaller> {
  const { attachments, records, instance } = parts;
  const attachment = attachments.open(sessionId);
  const record: AttachedRecord = { kind: "attached", sessionId, instance, attachmentId: attachment.id, graceMs };
  try {
    const revision = await records.put(sessionId, record);
    attachment.revision = revision;
    await endIfReplaced(records, attachment); // what came between was told before the revision was known
    return {
      attachment,
      async [Symbol.asyncDispose]() {
        attachment.end("detached");
        await endStream(parts, { key: sessionId, value: record, revision });
      },
    };
  } catch (error) {
    attachment.end("detached");
    throw error;
  }
}

/** Ends a stream that its record does not name any more. */
export async function endIfReplaced(records: StreamRecords, attachment: Attachment): Promise<void> {
  if (attachment.revision === undefined) return;
  const found = await records.read(attachment.sessionId);
  const isOurs = found?.value.kind === "attached" && found.value.attachmentId === attachment.id;
  if (!isOurs) attachment.end("replaced");
}
