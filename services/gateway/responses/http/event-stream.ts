import type { HttpResponse } from "#runtime/rpc/http/messages.ts";
import { answerStream } from "../../plain/exchange.ts";
import type { StreamEvent } from "../rendering/event-writer.ts";
import { responseErrorFrom } from "./refusals.ts";

export const DONE = "data: [DONE]\n\n";

export const answerEvents = (response: HttpResponse, batches: AsyncIterable<StreamEvent[]>) =>
  answerStream(response, textsFrom(batches));

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
    const error = responseErrorFrom(cause);
    yield textOf({ ...error, type: "error", sequence_number: next, error });
  }
}

const textOf = (event: StreamEvent) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
