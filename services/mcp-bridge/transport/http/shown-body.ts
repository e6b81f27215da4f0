import { EventSourceParserStream } from "eventsource-parser/stream";

/** What a reader that parses and judges messages itself is shown of each text of them: texts of one message each, or what stood there. */
type Show = (text: string) => string[];

/** The response, JSON or an event stream of it, as its reader is shown it. */
export function shownResponse(response: Response, show: Show): Response {
  const { body, status, statusText, headers } = response;
  if (body === null || !response.ok) return response;
  const shown = headers.get("content-type")?.includes("text/event-stream") ? shownEvents : shownWhole;
  const texts = ReadableStream.from(shown(body.pipeThrough(new TextDecoderStream()), show));
  return new Response(texts.pipeThrough(new TextEncoderStream()), { status, statusText, headers });
}

async function* shownWhole(texts: ReadableStream<string>, show: Show): AsyncGenerator<string> {
  const [first = "", ...more] = show((await Array.fromAsync(texts)).join(""));
  yield more.length === 0 ? first : `[${[first, ...more].join()}]`;
}

async function* shownEvents(texts: ReadableStream<string>, show: Show): AsyncGenerator<string> {
  let retry = "";
  const onRetry = (ms: number) => {
    retry = `retry: ${ms}\n\n`;
  };
  for await (const { id, event, data } of texts.pipeThrough(new EventSourceParserStream({ onRetry }))) {
    const head = `${retry}${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}`;
    retry = "";
    for (const text of show(data)) yield `${head}data: ${text.replaceAll("\n", "\ndata: ")}\n\n`;
  }
  yield retry;
}
