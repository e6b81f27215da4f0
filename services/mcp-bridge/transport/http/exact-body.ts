import { markNumbers, mayLoseDigits } from "#runtime/schema/json/exact-json.ts";

const NEW_LINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/**
 * The response, JSON or an event stream of it, for a reader that parses it itself: numbers that no double holds are marked
 * (`markNumbers`), which `onMarked` is told. A line goes on when it is whole.
 */
export function withExactNumbers(response: Response, mark: string, onMarked: () => void): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) return response;
  const isEvents = headers.get("content-type")?.includes("text/event-stream") ?? false;
  let held: Uint8Array[] = [];
  const marked = (bytes: Buffer) => {
    if (!mayLoseDigits(bytes.toString("latin1"))) return bytes;
    onMarked();
    const text = bytes.toString();
    const ofLine = (line: string) => markNumbers(line, mark);
    return Buffer.from(isEvents ? text.replace(/(?<=^|[\r\n])data:[^\r\n]*/g, ofLine) : ofLine(text));
  };
  const lines = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      const end = Math.max(chunk.lastIndexOf(NEW_LINE), chunk.lastIndexOf(CARRIAGE_RETURN)) + 1;
      if (end > 0) {
        controller.enqueue(marked(Buffer.concat([...held, chunk.subarray(0, end)])));
        held = [];
      }
      if (end < chunk.length) held.push(chunk.subarray(end));
    },
    flush(controller) {
      if (held.length > 0) controller.enqueue(marked(Buffer.concat(held)));
    },
  });
  return new Response(body.pipeThrough(lines), { status, statusText, headers });
}
