/**
 * What the package for the chat completions API makes nothing of, in streams of that API, as `call-deltas.ts` says for calls.
 *
 * A count of tokens that is no number is left out, and so estimated: it says nothing about the answer. The package makes a zero of one
 * that is not there: counts that tell nothing are left out altogether. Where they come alone, a chunk may have no `choices`, which the
 * package asks for.
 */

import { fieldsOf, jsonFrom } from "#runtime/schema/json-object.ts";
import { type BegunCalls, type CallDelta, mendCall } from "./call-deltas.ts";

type Fetch = typeof fetch;

/** The same, but with event streams that are mended so, and errors, wherever they come, `redact`ed. All else passes as it comes. */
export const mendingStreams =
  (ask: Fetch, redact: (text: string) => string): Fetch =>
  async (input, init) => {
    const response = await ask(input, init);
    const { body, status, statusText, headers } = response;
    if (!response.ok && body !== null) return new Response(redact(await response.text()), response);
    const type = headers.get("content-type")?.toLowerCase() ?? "";
    const isJson = type.startsWith("application/json");
    if (body === null || !(isJson || type.startsWith("text/event-stream"))) return response;
    const stream = isJson ? body.pipeThrough(errorsOfJson()) : body;
    return new Response(stream.pipeThrough(mendingLines(redact)), { status, statusText, headers });
  };

const brace = 0x7b;
const byteOrderMark = [0xef, 0xbb, 0xbf];

/** Some servers say with 200 what has failed, as JSON, which the package looks for in a stream. Others say JSON of a stream, which goes on. */
function errorsOfJson(): TransformStream<Uint8Array, Uint8Array> {
  const json: Uint8Array[] = [];
  let jsonBytes = 0;
  let isJson: boolean | undefined;
  return new TransformStream({
    transform(chunk, sink) {
      const first = chunk.find((byte) => byte > 0x20 && !byteOrderMark.includes(byte)); // no blank
      if (first !== undefined) isJson ??= first === brace;
      if (isJson === false) return sink.enqueue(chunk);
      json.push(chunk);
      jsonBytes += chunk.length;
      if (jsonBytes > maxLineBytes) sink.error(tooLong());
    },
    flush(sink) {
      const told = isJson ? fieldsOf(jsonFrom(new TextDecoder().decode(Buffer.concat(json)))) : {};
      if (told.error) sink.enqueue(Buffer.from(`data: ${JSON.stringify(told)}\n\n`)); // else it is a stream without an end
    },
  });
}

const lineEnd = 0x0a;

/** No line of an answer that a log takes is longer, however it is written. */
const maxLineBytes = 16 * 2 ** 20;
const tooLong = () => new Error(`a line of the model's stream is over ${maxLineBytes} bytes`);

/** What a line with something to mend has. */
const marks = ['"tool_calls"', '"usage"', '"error"'];

function mendingLines(redact: (text: string) => string): TransformStream<Uint8Array, Uint8Array> {
  const begun: BegunCalls = new Map();
  let rest: Uint8Array[] = [];
  let restBytes = 0;
  return new TransformStream({
    transform(chunk, sink) {
      const end = chunk.lastIndexOf(lineEnd) + 1;
      if (end === 0) {
        rest.push(chunk);
        restBytes += chunk.length;
        if (restBytes > maxLineBytes) sink.error(tooLong());
        return;
      }
      const lines = Buffer.concat([...rest, chunk.subarray(0, end)]);
      rest = end < chunk.length ? [chunk.subarray(end)] : [];
      restBytes = chunk.length - end;
      const isMarked = marks.some((mark) => lines.includes(mark));
      sink.enqueue(isMarked ? Buffer.from(mendedLines(redact(lines.toString()), begun)) : lines);
    },
    flush(sink) {
      const last = mendedLines(redact(Buffer.concat(rest).toString()), begun);
      const isCut = last.startsWith("data:") && jsonFrom(last.slice("data:".length)) === undefined;
      sink.enqueue(Buffer.from(isCut ? "\n\n" : `${last}\n\n`)); // without an empty line the last event would not count
    },
  });
}

function mendedLines(lines: string, begun: BegunCalls): string {
  return lines
    .split("\n")
    .map((line) => {
      const isMarked = line.startsWith("data:") && marks.some((mark) => line.includes(mark));
      return isMarked ? mendedLine(line, begun) : line;
    })
    .join("\n");
}

interface Chunk {
  choices?: { delta?: { tool_calls?: CallDelta[] | null } | null }[];
  usage?: Record<string, unknown> | null;
}

function mendedLine(line: string, begun: BegunCalls): string {
  try {
    const chunk = JSON.parse(line.slice("data:".length)) as Chunk;
    const calls = (chunk.choices ?? []).flatMap(({ delta }) => delta?.tool_calls ?? []);
    const mended = [...calls.map((call) => mendCall(call, begun)), mendUsage(chunk)];
    return mended.includes(true) ? `data: ${JSON.stringify(chunk)}` : line;
  } catch {
    return line; // the package says what is wrong with it
  }
}

/** Gives whether it changed anything. */
function mendUsage(chunk: Chunk): boolean {
  const { usage } = chunk;
  if (typeof usage !== "object" || usage === null) return false;
  const isMended = mendCounts(usage) || !chunk.choices;
  chunk.choices ??= [];
  if (typeof usage.prompt_tokens === "number" || typeof usage.completion_tokens === "number") return isMended;
  delete chunk.usage;
  return true;
}

function mendCounts(counts: Record<string, unknown>): boolean {
  let isChanged = false;
  for (const [name, count] of Object.entries(counts)) {
    if (typeof count === "object" && count !== null && mendCounts(count as typeof counts)) isChanged = true;
    if (!name.endsWith("_tokens") || count === null || typeof count === "number") continue;
    delete counts[name];
    isChanged = true;
  }
  return isChanged;
}
