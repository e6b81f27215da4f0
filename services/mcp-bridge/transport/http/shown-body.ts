import type { EventSourceMessage } from "eventsource-parser/stream";
import { EventSourceParserStream } from "eventsource-parser/stream";

/** What a reader that parses and judges messages itself is shown of each text of them: texts of one message each, or what stood there. */
export type Show = (text: string) => string[];

/** The response, JSON or an event stream of it, as its reader is shown it. */
export function shownResponse(response: Response, show: Show): Response {
  const { body, status, statusText, headers } = response;
  if (body === null || !response.ok) return response;
  const isEvents = headers.get("content-type")?.includes("text/event-stream") ?? false;
  const texts = body.pipeThrough(new TextDecoderStream());
  const shown = isEvents ? shownEvents(texts, show) : texts.pipeThrough(shownWhole(show));
  return new Response(shown.pipeThrough(new TextEncoderStream()), { status, statusText, headers });
}

function shownWhole(show: Show): TransformStream<string, string> {
  const pieces: string[] = [];
  return new TransformStream({
    transform: (piece) => void pieces.push(piece),
    flush(controller) {
      const [first = "", ...more] = show(pieces.join(""));
      controller.enqueue(more.length === 0 ? first : `[${[first, ...more].join()}]`);
    },
  });
}

function shownEvents(texts: ReadableStream<string>, show: Show): ReadableStream<string> {
  const retries: string[] = [];
  const onRetry = (ms: number) => void retries.push(`retry: ${ms}\n\n`);
  const written = ({ id, event, data }: EventSourceMessage) => {
    const head = `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}`;
    return show(data).map((text) => `${head}data: ${text.replaceAll("\n", "\ndata: ")}\n\n`);
  };
  return texts.pipeThrough(new EventSourceParserStream({ onRetry })).pipeThrough(
    new TransformStream<EventSourceMessage, string>({
      transform: (event, controller) => controller.enqueue([...retries.splice(0), ...written(event)].join("")),
      flush: (controller) => controller.enqueue(retries.join("")),
    }),
  );
}
