import type { Submission } from "#runtime/results/submission.ts";
import type { Answers } from "../requests/answers.ts";
import type { Attachments } from "../streams/attachments.ts";
import { type CallerStream, type StreamRecords, streamsOf } from "../streams/stream-record.ts";

interface KeepingParts {
  instance: string;
  attachments: Attachments;
  records: StreamRecords;
  keep: Answers["keep"];
  /** Asks another instance to keep it. */
  keepAt: (stream: CallerStream, sessionId: string, requestId: string, submission: Submission) => Promise<boolean>;
}

export type Keeping = ReturnType<typeof createKeeping>;

/** Keeps an answer that came while no instance held the call, as its holder had died. False when no stream carries its request. */
export function createKeeping({ instance, attachments, records, keep, keepAt }: KeepingParts) {
  async function here(attachmentId: string, requestId: string, submission: Submission): Promise<boolean> {
    const attachment = attachments.find(attachmentId);
    if (!attachment?.isOrphaned(requestId)) return false;
    if (!(await keep(attachment.sessionId, requestId, submission))) return false;
    attachment.markAnswered(requestId);
    return true;
  }
  return {
    here,
    async anywhere(sessionId: string, requestId: string, submission: Submission): Promise<boolean> {
      for (const stream of streamsOf((await records.read(sessionId))?.value)) {
        const isKept =
          stream.instance === instance
            ? await here(stream.attachmentId, requestId, submission)
            : await keepAt(stream, sessionId, requestId, submission);
        if (isKept) return true;
      }
      return false;
    },
  };
}
