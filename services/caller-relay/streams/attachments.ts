import type { CallerToolRequest } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { type Attachment, createAttachment, type EmissionEnd } from "./attachment.ts";
import type { CallerStream } from "./stream-record.ts";

/**
 * What became of a request that was to be sent. `absent`: there is no such stream, and nothing was sent; `unknown`: the stream does not
 * carry the request that was to be taken over.
 */
export type Carriage = { kind: "ended"; end: EmissionEnd } | { kind: "absent" } | { kind: "unknown" };

/** `first` sends a request to the caller; `adopt` takes over one that the stream carries already. */
export type CarryMode = "first" | "adopt";

export interface CarryOptions {
  readonly signal: AbortSignal;
  readonly mode: CarryMode;
  /** The instance that holds the call. */
  readonly holder: string;
}

export type Attachments = ReturnType<typeof createAttachments>;

/** The open streams of callers in this process. */
export function createAttachments() {
  const attachmentsById = new Map<string, Attachment>();
  return {
    open(sessionId: string): Attachment {
      const attachment = createAttachment(sessionId);
      attachmentsById.set(attachment.id, attachment);
      void attachment.ended.then(() => attachmentsById.delete(attachment.id));
      return attachment;
    },
    find: (id: string) => attachmentsById.get(id),
    all: () => [...attachmentsById.values()],
    /**
     * Has a stream here carry a request, and stays until that ends. An aborted signal takes the request back, unless its holder was
     * lost: then it waits for the next one.
     */
    async carry(id: string, request: CallerToolRequest, { signal, mode, holder }: CarryOptions): Promise<Carriage> {
      const attachment = attachmentsById.get(id);
      if (attachment === undefined) return { kind: "absent" };
      using emission =
        mode === "adopt" ? attachment.adopt(request.requestId, holder) : attachment.emit(request, holder);
      if (emission === undefined) return { kind: "unknown" };
      try {
        return { kind: "ended", end: await unlessAborted(emission.ended, signal) };
      } catch (error) {
        if (signal.aborted && failureFromConnectError(signal.reason).code === "unavailable") emission.orphan();
        throw error;
      }
    },
    /** Ends what the session has here but for the streams that its record names, if that record is newer. */
    keepOnly(sessionId: string, named: readonly CallerStream[], revision: number): void {
      const names = new Set(named.map(({ attachmentId }) => attachmentId));
      for (const other of attachmentsById.values()) {
        if (other.sessionId !== sessionId || names.has(other.id) || other.revision === undefined) continue;
        if (other.revision < revision) other.end(named.length > 0 ? "replaced" : "closed");
      }
    },
  };
}
