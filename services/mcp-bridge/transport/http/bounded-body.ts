import { randomUUID } from "node:crypto";
import { openSlices } from "#runtime/rpc/handling/messages/slices.ts";
import { createValueCount, maxToolValues, tooMany } from "#runtime/schema/json/json-size.ts";

/**
 * The response with a body that ends in an error instead of growing without bound, in bytes or in values of JSON, counted as it is
 * unpacked: as a whole, or, of an event stream, each event.
 */
export function boundedResponse(
  response: Response,
  { maxBytes, limitName, onTooLarge }: { maxBytes: number; limitName: string; onTooLarge: (error: Error) => void },
): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) return response;
  const isEvents = headers.get("content-type")?.includes("text/event-stream") ?? false;
  let length = 0;
  let hasMore = createValueCount(maxToolValues);
  let last: Buffer = Buffer.alloc(0);
  const count = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      const end = isEvents
        ? Math.max(endOfEvent(bytes), endOfEvent(Buffer.concat([last, bytes.subarray(0, 1)])) - 1)
        : -1;
      length = end < 0 ? length + bytes.length : bytes.length - end;
      last = bytes.subarray(-1);
      if (end >= 0) hasMore = createValueCount(maxToolValues);
      const isOver = hasMore(end < 0 ? bytes : bytes.subarray(end));
      if (isOver || length > maxBytes) {
        const large = `is larger than ${maxBytes} bytes${limitName && ` (${limitName})`}`;
        const error = new Error(`the server's answer ${isOver ? `has ${tooMany(maxToolValues)}` : large}`);
        onTooLarge(error);
        throw error;
      }
      controller.enqueue(chunk);
    },
  });
  return new Response(inSlices(body.pipeThrough(count)), { status, statusText, headers });
}

/** Some ten small events. */
const PIECE_BYTES = 1_024;

/** What comes at once, in pieces with some events: a stream that floods leaves others their time. A long event stays whole. */
function inSlices(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const slice = openSlices(randomUUID());
  let rest: Buffer = Buffer.alloc(0);
  const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    if (rest.length === 0) {
      const { done, value } = await reader.read();
      if (done) return controller.close();
      rest = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    await slice();
    const isLong = endOfEvent(rest.subarray(0, PIECE_BYTES)) < 0;
    const size = isLong ? firstEnd(rest) + PIECE_BYTES : PIECE_BYTES;
    controller.enqueue(rest.subarray(0, size));
    rest = rest.subarray(size);
  };
  return new ReadableStream({ pull, cancel: (reason) => reader.cancel(reason) }, { highWaterMark: 0 });
}

const ENDS = ["\n\n", "\n\r", "\r\r"];

/** Where the first event ends; behind them all when none does. */
function firstEnd(bytes: Buffer): number {
  return ENDS.reduce((end, ends) => {
    const found = bytes.subarray(0, end).indexOf(ends);
    return found < 0 ? end : found;
  }, bytes.length);
}

/** Where the last empty line ends, which ends an event; negative when there is none. */
function endOfEvent(bytes: Buffer): number {
  const found = Math.max(...ENDS.map((ends) => bytes.lastIndexOf(ends)));
  return found < 0 ? -1 : found + 2;
}
