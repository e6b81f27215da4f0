/**
 * Calls without a name, in streams of the chat completions API.
 *
 * A weak model writes one at times. The package leaves such a call out, or breaks the stream off, according to how its
 * arguments come. Given a name that says so, it reaches the loop, which answers it with an error. A blank name further on
 * belongs to a call that has its name already.
 */

/** In place of a name. */
export const namelessCall = "unnamed";

/** A `fetch` whose event streams have a name for each call. All that is no call passes as it comes. */
export const fetchNamingCalls: typeof fetch = async (input, init) => {
  const response = await fetch(input, init);
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
  if (response.body === null || !isStream) return response;
  const { status, statusText, headers } = response;
  return new Response(response.body.pipeThrough(namingCalls()), { status, statusText, headers });
};

const lineEnd = 0x0a;

function namingCalls(): TransformStream<Uint8Array, Uint8Array> {
  const begun = new Set<unknown>();
  let rest: Uint8Array[] = [];
  return new TransformStream({
    transform(chunk, sink) {
      const end = chunk.lastIndexOf(lineEnd) + 1;
      if (end === 0) {
        rest.push(chunk);
        return;
      }
      const lines = Buffer.concat([...rest, chunk.subarray(0, end)]);
      rest = end < chunk.length ? [chunk.subarray(end)] : [];
      sink.enqueue(lines.includes('"tool_calls"') ? Buffer.from(withNames(lines.toString(), begun)) : lines);
    },
    flush(sink) {
      if (rest.length > 0) sink.enqueue(Buffer.concat(rest));
    },
  });
}

function withNames(lines: string, begun: Set<unknown>): string {
  return lines
    .split("\n")
    .map((line) => (line.startsWith("data:") && line.includes('"tool_calls"') ? withName(line, begun) : line))
    .join("\n");
}

interface CallDelta {
  index?: unknown;
  function?: { name?: unknown };
}

function withName(line: string, begun: Set<unknown>): string {
  let isChanged = false;
  try {
    const chunk = JSON.parse(line.slice("data:".length)) as { choices: { delta: { tool_calls: CallDelta[] } }[] };
    for (const { index, function: called } of chunk.choices.flatMap(({ delta }) => delta.tool_calls)) {
      const name = called?.name;
      if (called === undefined || typeof name !== "string" || begun.has(index)) continue;
      begun.add(index);
      if (name.trim() !== "") continue;
      called.name = namelessCall;
      isChanged = true;
    }
    return isChanged ? `data: ${JSON.stringify(chunk)}` : line;
  } catch {
    return line; // the package says what is wrong with it
  }
}
