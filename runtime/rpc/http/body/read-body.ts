import type { Readable } from "node:stream";
import { connectError } from "../../../failure/connect.ts";
import type { Pace } from "./pace.ts";

/** The body of a request, or what was read of one until it was too long. */
export type Body = { kind: "whole"; bytes: Uint8Array } | { kind: "too long"; chunks: readonly Uint8Array[] };

export interface Reading {
  readonly maxBytes: number;
  /** Told of each part; what it throws ends the reading, and where it gives a promise no more is read until that resolves. */
  readonly hold: (bytes: number) => Promise<void> | undefined;
  /** Begins to watch how fast the body comes. */
  readonly pace: (onSlow: (error: unknown) => void) => Pace;
}

/** Reads a body to its end unless it is longer than `maxBytes`. Throws `canceled` when the client leaves before its end. */
export function readBody(source: Readable, { maxBytes, hold, pace }: Reading): Promise<Body> {
  // An empty body may have ended before anybody listens.
  if (source.readableEnded && !isCutOff(source)) return Promise.resolve({ kind: "whole", bytes: new Uint8Array() });
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    let isSettled = false;
    const onData = (chunk: Uint8Array) => {
      watched.came(chunk.length);
      let room: Promise<void> | undefined;
      try {
        room = hold(chunk.length);
      } catch (error) {
        return settle(() => reject(error));
      }
      chunks.push(chunk);
      length += chunk.length;
      if (length > maxBytes) settle(() => resolve({ kind: "too long", chunks }));
      else if (room) waitFor(room);
    };
    const waitFor = (room: Promise<void>) => {
      source.pause();
      watched.holdBack();
      const goOn = () => {
        if (isSettled) return;
        watched.goOn();
        source.resume();
      };
      room.then(goOn, (error: unknown) => settle(() => reject(error)));
    };
    const onEnd = () => (isCutOff(source) ? onGone() : settle(() => resolve({ kind: "whole", bytes: joined(chunks) })));
    const onGone = () => settle(() => reject(gone()));
    const watched = pace((error) => settle(() => reject(error)));
    function settle(then: () => void): void {
      isSettled = true;
      watched.stop();
      source.off("data", onData);
      source.off("end", onEnd);
      source.off("close", onGone);
      source.off("error", onGone);
      source.pause();
      then();
    }
    if (source.destroyed) return onGone();
    source.on("data", onData);
    source.on("end", onEnd);
    source.on("close", onGone);
    source.on("error", onGone);
  });
}

export function gone(cause?: unknown): Error {
  return connectError("canceled", "the client left within its request", { reason: "CANCELED", cause });
}

/** Node ends the body of a stream whose connection broke as if all of it had come. */
export function isCutOff(source: Readable): boolean {
  return "aborted" in source && source.aborted === true;
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const [only] = chunks;
  return chunks.length === 1 && only ? only : Buffer.concat(chunks);
}
