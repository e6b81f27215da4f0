import type { Readable } from "node:stream";
import { connectError } from "../../../failure/connect.ts";

/** The body of a request, or what was read of one until it was too long. */
export type Body = { kind: "whole"; bytes: Uint8Array } | { kind: "too long"; chunks: readonly Uint8Array[] };

/** Reads a body to its end unless it is longer than `maxBytes`. Throws `canceled` when the client leaves before its end. */
export function readBody(source: Readable, maxBytes: number): Promise<Body> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const onData = (chunk: Uint8Array) => {
      chunks.push(chunk);
      length += chunk.length;
      if (length > maxBytes) settle(() => resolve({ kind: "too long", chunks }));
    };
    const onEnd = () => settle(() => resolve({ kind: "whole", bytes: joined(chunks) }));
    const onGone = () =>
      settle(() => reject(connectError("canceled", "the client left within its request", { reason: "CANCELED" })));
    function settle(then: () => void): void {
      source.off("data", onData);
      source.off("end", onEnd);
      source.off("close", onGone);
      source.off("error", onGone);
      source.pause();
      then();
    }
    source.on("data", onData);
    source.on("end", onEnd);
    source.on("close", onGone);
    source.on("error", onGone);
  });
}

/** What was read, and then what is still to come. Who stops in between may still answer. */
export async function* wholeBody(read: readonly Uint8Array[], source: Readable): AsyncIterable<Uint8Array> {
  yield* read;
  for await (const chunk of source.iterator({ destroyOnReturn: false })) yield chunk;
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const [only] = chunks;
  return chunks.length === 1 && only ? only : Buffer.concat(chunks);
}
