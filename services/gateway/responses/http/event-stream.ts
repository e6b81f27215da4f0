import type { HttpResponse } from "#runtime/rpc/http/messages.ts";
import { answerStream } from "../../plain/exchange.ts";
import type { StreamEvent } from "../rendering/event-writer.ts";
import type { ResponseResource } from "../rendering/resource.ts";
import { type ResponseError, responseErrorFrom } from "./refusals.ts";

export const DONE = "data: [DONE]\n\n";

export const answerEvents = (response: HttpResponse, batches: AsyncIterable<StreamEvent[]>) =>
  answerStream(response, textsFrom(batches));

/** A stream that breaks or whose response failed says why, as many clients read no response: the number of that is none of its events. */
async function* textsFrom(batches: AsyncIterable<StreamEvent[]>): AsyncGenerator<string> {
  let last: StreamEvent | undefined;
  const errorEvent = (error: ResponseError) =>
    textOf({ ...error, type: "error", sequence_number: (last?.sequence_number ?? -1) + 1, error });
  try {
    for await (const events of batches) {
      last = events.at(-1) ?? last;
      if (events.length > 0) yield events.map(textOf).join("");
    }
    if (last?.type === "response.failed") yield errorEvent((last.response as ResponseResource).error as ResponseError);
    yield DONE;
  } catch (cause) {
    yield errorEvent(responseErrorFrom(cause));
  }
}

const textOf = (event: StreamEvent) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
