import type { File } from "#gen/toolbus/content/v1/content_pb.ts";
import { type Item, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";

/** A rough measure that rather says too much: models differ, and most count less. */
const bytesOfToken = 3.5;
const tokensOfFrame = 4;

export function tokensOfItems(items: readonly Item[]): number {
  return items.reduce((tokens, item) => tokens + Buffer.byteLength(textOfItem(item)) / bytesOfToken + tokensOfFrame, 0);
}

/** No line is shortened to less. */
const shortestBytes = 100;

/** A conversation as text, each item shortened alike until all of them have room; the earliest left out where they cannot have. */
export function transcriptFromItems(items: readonly Item[], maxTokens: number): string {
  const maxBytes = Math.floor(maxTokens * bytesOfToken * 0.8);
  const lines = items.map(textOfItem).filter((line) => line !== "");
  const first = firstWithRoom(lines, maxBytes);
  const latest = lines.slice(first);
  const limit = limitOfLine(latest, maxBytes);
  const gone = first > 0 ? [`[The ${first} earliest are left out]`] : [];
  return [...gone, ...latest.map((line) => shortened(line, limit))].join("\n");
}

/** The first of the latest lines that all have room when they are shortened as far as lines may be. */
function firstWithRoom(lines: readonly string[], maxBytes: number): number {
  let bytes = 0;
  const firstOutside = lines.findLastIndex((line) => {
    bytes += Math.min(shortestBytes, Buffer.byteLength(line)) + 1; // with the end of the line
    return bytes > maxBytes;
  });
  return firstOutside + 1;
}

/** The longest line that lets all have room, short ones staying whole. */
function limitOfLine(lines: readonly string[], maxBytes: number): number {
  const lengths = lines.map((line) => Buffer.byteLength(line)).sort((one, other) => one - other);
  let left = maxBytes;
  for (const [index, length] of lengths.entries()) {
    const share = left / (lengths.length - index);
    if (length > share) return Math.floor(share);
    left -= length;
  }
  return Number.POSITIVE_INFINITY;
}

/** Beginning and end say most. */
function shortened(line: string, limit: number): string {
  const bytes = Buffer.from(line);
  if (bytes.length <= limit) return line;
  const half = Math.floor((limit - 50) / 2);
  const [beginning, end] = [bytes.subarray(0, half), bytes.subarray(-half)];
  return `${beginning} … (${bytes.length - 2 * half} bytes left out) … ${end}`;
}

function textOfItem({ item }: Item): string {
  switch (item.case) {
    case "message": {
      const { role, content } = item.value;
      const files = content.flatMap(({ part }) => (part.case === "file" ? [wordsOf(part.value)] : []));
      const text = [textOfContent(content), ...files].filter((line) => line !== "").join(" ");
      return text === "" ? "" : `${nameOfRole(role)}: ${text}`;
    }
    case "functionCall":
      return `assistant calls ${item.value.name} (${item.value.callId}): ${item.value.argumentsJson}`;
    case "functionCallOutput":
      return `result (${item.value.callId}): ${item.value.result?.outputJson ?? ""}`;
    case "reasoning":
      return item.value.text === "" ? "" : `assistant thinks: ${item.value.text}`;
    default:
      return "";
  }
}

function wordsOf({ filename, mediaType }: File): string {
  return `[File ${filename} ${mediaType}]`;
}

function nameOfRole(role: Role): string {
  if (role === Role.ASSISTANT) return "assistant";
  return role === Role.SYSTEM ? "system" : "user";
}
