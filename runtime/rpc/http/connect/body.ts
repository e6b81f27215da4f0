import { connectError } from "../../../failure/connect.ts";
import type { HttpRequest } from "../messages.ts";

/** The body of a request, or what was read of one until it was too long. */
export type Body = { kind: "whole"; bytes: Uint8Array } | { kind: "too long"; chunks: readonly Uint8Array[] };

/** Reads a body to its end unless it is longer than `maxBytes`. Throws `canceled` when the client leaves before its end. */
export function readBody(request: HttpRequest, maxBytes: number): Promise<Body> {
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
      request.off("data", onData);
      request.off("end", onEnd);
      request.off("close", onGone);
      request.off("error", onGone);
      request.pause();
      then();
    }
    request.on("data", onData);
    request.on("end", onEnd);
    request.on("close", onGone);
    request.on("error", onGone);
  });
}

/** What was read, and then what is still to come. */
export async function* wholeBody(read: readonly Uint8Array[], request: HttpRequest): AsyncIterable<Uint8Array> {
  yield* read;
  for await (const chunk of request) yield chunk;
}

function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const [only] = chunks;
  return chunks.length === 1 && only ? only : Buffer.concat(chunks);
}
