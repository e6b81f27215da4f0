import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { HttpResponse } from "#runtime/rpc/http/messages.ts";
import type { StreamEvent } from "../told/numbered.ts";
import { toldErrorFrom } from "./refusals.ts";

/** How often a stream without events shows that it lives, which also finds a peer that is gone. */
const ALIVE_MS = 15_000;

export const DONE = "data: [DONE]\n\n";

export function answerEvents(response: HttpResponse, batches: AsyncIterable<StreamEvent[]>): Promise<void> {
  return answerStream(response, textsFrom(batches));
}

/** Resolves when all is written, or the client has left, which `texts` is told by its end. */
export async function answerStream(response: HttpResponse, texts: AsyncIterable<string>): Promise<void> {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  if ("flushHeaders" in response) response.flushHeaders(); // a stream may have nothing to say for long
  const alive = setInterval(() => response.write(": alive\n\n"), ALIVE_MS);
  try {
    await pipeline(Readable.from(texts), response);
  } catch {
    response.destroy(); // the client has left
  } finally {
    clearInterval(alive);
  }
}

/** A stream that breaks says why: the number of that is none of the response's events. */
async function* textsFrom(batches: AsyncIterable<StreamEvent[]>): AsyncGenerator<string> {
  let next = 0;
  try {
    for await (const events of batches) {
      next = (events.at(-1)?.sequence_number ?? next - 1) + 1;
      if (events.length > 0) yield events.map(textOf).join("");
    }
    yield DONE;
  } catch (cause) {
    const error = toldErrorFrom(cause);
    yield textOf({ ...error, type: "error", sequence_number: next, error });
  }
}

function textOf(event: StreamEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
