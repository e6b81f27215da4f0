/**
 * Results that are too large for a message, each under the session for which it was made and its own digest.
 *
 * results-1  The reference names the session, and so the owner: who may read the result is known without a record of it.
 * results-2  Nothing goes by age. A result stays as long as its session has runs, whose logs may refer to it, and at least as long as
 *     those would be kept; then removal.ts removes it.
 */

import { createHash } from "node:crypto";
import type { ObjectInfo } from "@nats-io/obj";
import type { Bus } from "../../bus/bus.ts";
import { failureFromRefusal } from "../../bus/link/jetstream-errors.ts";
import { retryOnBus } from "../../bus/link/link.ts";
import { readSubject } from "../../bus/streams/read.ts";
import { refuse } from "../../failure/failure.ts";

export const store = "toolbus_results";
export const chunksOf = (nuid: string) => `$O.${store}.C.${nuid}`;

export interface StoredResult {
  readonly reference: string;
  readonly sessionId: string;
  readonly bytes: number;
  readonly sha256: Uint8Array;
  readonly storedMs: number;
  /** Where its chunks stand. */
  readonly nuid: string;
}

export interface ResultStore {
  /** Keeps a result, and gives the reference under which it can be read. */
  put(sessionId: string, whole: string | Uint8Array): Promise<string>;
  /** Undefined for one that never was, or is no longer kept. */
  find(reference: string): Promise<StoredResult | undefined>;
  /** Its bytes from an offset on, in pieces that fit into a message. `not_found` when it goes meanwhile. */
  read(stored: StoredResult, offset: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** So long ago stored is the same as stored now. */
const freshMs = 60_000;

export function createResultStore(bus: Bus): ResultStore {
  async function find(reference: string): Promise<StoredResult | undefined> {
    if (sessionOfReference(reference) === undefined) return undefined;
    const read = async () => (await bus.objectStore(store)).info(reference);
    const info = await retryOnBus(bus.link, read, { what: "reading a result" });
    return info === null || info.deleted ? undefined : resultFrom(info);
  }

  return {
    async put(sessionId, whole) {
      const bytes = typeof whole === "string" ? Buffer.from(whole) : whole;
      const reference = `${sessionId}.sha256-${createHash("sha256").update(bytes).digest("hex")}`;
      const standing = await find(reference);
      const isFresh = standing !== undefined && Date.now() - standing.storedMs < freshMs; // results-2
      const onRefused = (error: unknown) => Promise.reject(failureFromRefusal(error, `OBJ_${store}`) ?? error);
      const keep = async () => (await bus.objectStore(store)).putBlob({ name: reference }, bytes).catch(onRefused);
      if (!isFresh) await retryOnBus(bus.link, keep, { attemptMs: Number.POSITIVE_INFINITY, what: "storing a result" });
      return reference;
    },
    find,
    async *read({ reference, nuid, bytes }, offset, signal) {
      let position = 0;
      for await (const { data } of readSubject(bus, chunksOf(nuid), { signal })) {
        const end = position + data.length;
        if (end > offset) yield data.subarray(Math.max(offset - position, 0));
        position = end;
      }
      if (position < bytes)
        refuse("not_found", `result ${reference} was removed while it was read`, { reason: "RESULT_NOT_FOUND" });
    },
  };
}

const form = /^([a-zA-Z0-9_-]{1,64})\.sha256-([0-9a-f]{64})$/;

/** Undefined for what is no reference. */
export function sessionOfReference(reference: string): string | undefined {
  return form.exec(reference)?.[1];
}

/** SHA-256 of the whole, in hex. */
export function digestOfReference(reference: string): string | undefined {
  return form.exec(reference)?.[2];
}

export function resultFrom({ name, size, mtime, nuid }: ObjectInfo): StoredResult | undefined {
  const [, sessionId = "", hex = ""] = form.exec(name) ?? [];
  if (sessionId === "") return undefined;
  return {
    reference: name,
    sessionId,
    bytes: size,
    sha256: Buffer.from(hex, "hex"),
    storedMs: Date.parse(mtime),
    nuid,
  };
}
