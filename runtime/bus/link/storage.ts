/**
 * Whether JetStream stores anything. It does not when most nodes of a cluster are away, or when its disk is full, though
 * messages go on being carried: nothing else tells of that in time.
 *
 * storage-1  A probe is written each 2 s, and is answered within 1 s. When 4 s after one that was not, none has been acknowledged, nothing
 *     is stored, until one is. Meanwhile a call tries to read once, and writes nothing: it would only be unknown whether that is stored
 *     in the end. A probe that met no server says nothing of what is behind it, and how long ago the last one was acknowledged does
 *     not count: this process may have been frozen.
 * storage-2  A call that was given up because the bus did not answer is a fault, too: a disk that has room for a probe may have none
 *     for what matters. It is over when something is stored where that call could not, or after a minute without another one.
 * storage-3  Silence of a bus on which no probe was ever stored means nothing: this login may not write any.
 * storage-4  A probe says in its text which fault its writer has met: who follows the probes knows of all services.
 * storage-5  What a service does by itself, as following a store, waits as long as it takes: given up, it would not begin again.
 */

import type { NatsConnection } from "@nats-io/transport-node";
import { Failure, messageFromUnknown } from "../../failure/failure.ts";
import { openBackground } from "../../lifecycle/background.ts";
import { delay } from "../../time/delay.ts";
import { attemptMs, callPatience } from "./call-patience.ts";

/** The probes of all, in `TOOLBUS_PROBE`, which keeps the last one of each name. */
export const probeSubjects = "toolbus.probe.*";

/** As large as the blocks of a disk. */
const probeBytes = 4_096;
const intervalMs = 2_000;
const silentMs = 4_000;
const heldMs = 60_000;

export interface Storage {
  /** Why nothing can be stored; undefined while it can. */
  readonly fault: string | undefined;
  /** How long an answer may take that somebody waits for; without limit outside of calls. */
  readonly patienceMs: number;
  /** Throws `unavailable` when a call need not try to write. */
  refuseWrites(what: string): void;
  /** What a call is told that was given up. */
  givenUp(what: string, cause: unknown): Failure;
  /** A call was given up that wrote to this stream (storage-2); gives the words for it. */
  notStored(stream: string, cause: unknown): string;
  stored(stream: string): void;
  onChange(listener: (fault: string | undefined) => void): void;
  /** Writes probes until it is disposed. */
  watch(writeProbe: (text: string) => Promise<unknown>): AsyncDisposable;
}

export function createStorage(connection: Pick<NatsConnection, "info">): Storage {
  const listeners = new Set<(fault: string | undefined) => void>();
  let fault: string | undefined;
  let isSilent = false;
  /** Where a call could not write, and when. */
  let failed: { stream: string; atMs: number } | undefined;

  function set(next: string | undefined): void {
    const hasChanged = (fault === undefined) !== (next === undefined);
    fault = next;
    if (hasChanged) for (const listener of listeners) listener(fault);
  }

  function explain(cause: unknown): string {
    if (cause instanceof Failure) return cause.message;
    const why = connection.info?.cluster === undefined ? "its disk is full" : "it has no quorum, or its disks are full";
    return `the bus carries messages, but does not store or read all, as when ${why} (${messageFromUnknown(cause)})`;
  }

  async function watchUntil(signal: AbortSignal, writeProbe: (text: string) => Promise<unknown>): Promise<void> {
    let hasStored = false; // storage-3
    let unansweredAtMs: number | undefined;
    for (; ; await delay(intervalMs, signal)) {
      try {
        await writeProbe((fault ?? "").padEnd(probeBytes).slice(0, probeBytes));
        hasStored = true;
        unansweredAtMs = undefined;
        isSilent = false;
        if (failed === undefined || performance.now() - failed.atMs > heldMs) set(undefined);
      } catch (error) {
        if (!hasStored || isBusUnavailable(error)) continue;
        unansweredAtMs ??= performance.now();
        isSilent = performance.now() - unansweredAtMs > silentMs;
        if (!isSilent) continue;
        failed = undefined; // this is more than that was
        set(explain(error));
      }
    }
  }

  const refused = (what: string, reason: string, cause?: unknown) =>
    new Failure("unavailable", `${what}: ${reason}`, { reason: "BUS_UNAVAILABLE", cause });

  return {
    get fault() {
      return fault;
    },
    get patienceMs() {
      const leftMs = callPatience.leftMs;
      return isSilent && Number.isFinite(leftMs) ? attemptMs : leftMs; // storage-5
    },
    refuseWrites(what) {
      if (isSilent && fault !== undefined && Number.isFinite(callPatience.leftMs)) throw refused(what, fault);
    },
    givenUp: (what, cause) => refused(what, explain(cause), cause),
    notStored(stream, cause) {
      if (!isSilent) failed = { stream, atMs: performance.now() };
      set(explain(cause));
      return explain(cause);
    },
    stored(stream) {
      if (failed?.stream !== stream) return;
      failed = undefined;
      set(undefined);
    },
    onChange: (listener) => void listeners.add(listener),
    watch: (writeProbe) => openBackground((signal) => watchUntil(signal, writeProbe).catch(() => {})), // aborted: it is closed
  };
}

/** Waits for what a view has not seen yet, but not while nothing is stored: then what it shows is all there is to tell. */
export async function unlessStalled(storage: Pick<Storage, "fault">, caughtUp: () => Promise<void>): Promise<void> {
  if (storage.fault !== undefined) return;
  await caughtUp().catch((error: unknown) => {
    if (!isBusUnavailable(error)) throw error;
  });
}

function isBusUnavailable(error: unknown): boolean {
  return error instanceof Failure && error.reason === "BUS_UNAVAILABLE";
}
