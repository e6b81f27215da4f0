import type { Place } from "#runtime/bus/buckets/bucket.ts";
import { standingMessages } from "#runtime/bus/buckets/listing.ts";
import { sharedReading } from "#runtime/bus/buckets/reading/shared-reading.ts";
import { changeFrom } from "#runtime/bus/buckets/values.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { withoutPrincipal } from "#runtime/rpc/identity.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import type { CallRecord } from "../../../calls/records/record/call-record.ts";
import { isOpen } from "../../../calls/records/record/states.ts";
import type { OpenCall } from "../../../calls/records/store.ts";

/** A removal leaves a message for a minute alone (BUCKET-6). What was known so long ago may have ended and left without a trace. */
const KNOWN_MS = 30_000;

/** Which calls are open. A list reads what was written since the one before, whoever asked: few calls among many records cost little. */
export function createOpenCalls(bus: Bus, place: Place<CallRecord>) {
  let known = nothing();
  const forget = () => {
    known = nothing();
  };
  const catchUp = sharedReading(async () => {
    if (performance.now() - known.readAtMs > KNOWN_MS) forget();
    const mine = known;
    const subjects = `$KV.${place.bucket}.>`;
    for await (const message of standingMessages(bus, subjects, { fromSequence: mine.reached + 1 })) {
      const change = changeFrom(bus, place, message);
      if (change.kind === "set" && isOpen(change.value)) mine.open.set(change.key, openCallFrom(change.value));
      else mine.open.delete(change.key);
      mine.reached = change.revision;
    }
    mine.readAtMs = performance.now();
    return mine.open;
  });
  const endReturns = bus.link.onReturn(forget); // to a server that may have lost what it had acknowledged
  return {
    list: async (signal: AbortSignal): Promise<Iterable<OpenCall>> =>
      (await unlessAborted(withoutPrincipal(catchUp), signal)).values(),
    [Symbol.dispose]: () => endReturns(),
  };
}

function nothing() {
  return { reached: 0, readAtMs: performance.now(), open: new Map<string, OpenCall>() };
}

function openCallFrom(record: CallRecord): OpenCall {
  const { callId, state, tool, sessionId, principal, taken, watcherPrincipal } = record;
  return { callId, state, tool, sessionId, principal, taken, watcherPrincipal };
}
