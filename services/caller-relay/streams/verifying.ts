import { endIfReplaced } from "./attaching.ts";
import type { Attachments } from "./attachments.ts";
import type { StreamRecords } from "./stream-record.ts";

const verifyMs = 10_000;

/**
 * Reads the records of all streams here from time to time, and ends those that are not named any more: another instance may
 * have taken this one for dead. New streams are told of at once; this finds what was missed.
 */
export function openVerifying(parts: {
  attachments: Attachments;
  records: StreamRecords;
  onError: (error: unknown) => void;
}): Disposable {
  const verify = async () => {
    for (const attachment of parts.attachments.all()) await endIfReplaced(parts.records, attachment);
  };
  const timer = setInterval(() => void verify().catch(parts.onError), verifyMs).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
