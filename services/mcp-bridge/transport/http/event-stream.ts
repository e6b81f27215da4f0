import { type EventSourceMessage, EventSourceParserStream } from "eventsource-parser/stream";
import { reopened } from "./reopened.ts";

export interface EventStreamOptions {
  /** Asks for the stream; `lastEventId` is that of the last event seen. */
  request: (lastEventId: string | undefined, signal: AbortSignal) => Promise<Response>;
  signal: AbortSignal;
  onData: (data: string) => void;
  /** The stream is open again after a gap, in which events may have been missed. */
  onReopened: () => void;
  onTrouble: (error: unknown) => void;
}

/**
 * Reads the events that a server sends unasked, for as long as the signal allows. A server that keeps closing the stream is
 * asked again more and more rarely, never given up. One that has no such stream (405), or says that the session or the
 * permission is gone (any other 4xx), is not asked again.
 */
export function followEvents(options: EventStreamOptions): Promise<void> {
  const { signal } = options;
  let lastEventId: string | undefined;
  const read = async (isReopened: boolean) => {
    const response = await options.request(lastEventId, signal);
    if (response.status >= 400 && response.status < 500) return "done";
    if (!response.ok || !response.body) return;
    if (isReopened) options.onReopened();
    for await (const event of eventsOf(response.body)) {
      lastEventId = event.id ?? lastEventId;
      if (event.data !== "" && (event.event ?? "message") === "message") options.onData(event.data);
    }
  };
  return reopened(read, { signal, onError: options.onTrouble });
}

/** The events of a `text/event-stream`. */
export function eventsOf(body: ReadableStream<Uint8Array>): AsyncIterable<EventSourceMessage> {
  return body.pipeThrough(new TextDecoderStream()).pipeThrough(new EventSourceParserStream());
}
