import { z } from "zod";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import { maxPartBytes } from "#runtime/results/shortened.ts";
import { type StoredResult, sessionOfReference } from "#runtime/results/store/store.ts";
import { charactersUpTo, fromWholeCharacter } from "#runtime/results/utf8.ts";
import { type BuiltInCall, defineBuiltIn, pure, type Rooms } from "./built-in.ts";

/** What of a character may stand before a part, and after it. */
const characterBytes = 4;
const usualPartBytes = maxPartBytes / 2;

const readResult = defineBuiltIn({
  name: "read_result",
  description:
    "Read a part of a tool's result that was too large to be shown whole. Such a result says `truncated` and names its " +
    "`storedReference`. Returns the part's text, and the offset at which the next part begins, null at the end.",
  effect: pure,
  arguments: z.strictObject({
    reference: z.string().min(1).max(256).describe("The storedReference of the result."),
    offset: z.int().min(0).default(0).describe("How many bytes of it to pass over."),
    limit: z.int().min(characterBytes).max(maxPartBytes).default(usualPartBytes).describe("At most so many bytes."),
  }),
  async run(rooms, call, { reference, offset, limit }) {
    const stored = await find(rooms, call, reference);
    if (offset > stored.bytes)
      refuseField("offset", `${offset} is beyond the end of the result, which has ${stored.bytes} bytes`);
    const whole = await bytesOf(rooms, stored, { offset, limit });
    const text = fromWholeCharacter(whole);
    const begins = offset + whole.length - text.length;
    const part = begins + text.length === stored.bytes ? text : charactersUpTo(text, completeBytes(text));
    const ends = begins + part.length;
    const next = ends < stored.bytes ? ends : null;
    return { reference, bytes: stored.bytes, offset: begins, text: part.toString(), next_offset: next };
  },
});

/** What belongs to the owner of the session may be read in it: a fork goes on from what another session's tools answered. */
async function find(
  { results, sessions }: Rooms,
  { sessionId }: BuiltInCall,
  reference: string,
): Promise<StoredResult> {
  const text = `there is no result ${JSON.stringify(reference)} of yours: it never was, or is no longer kept`;
  const gone = () => refuse("not_found", text, { reason: "RESULT_NOT_FOUND" });
  const owner = sessionOfReference(reference) ?? gone();
  const isOwn = owner === sessionId || (await sessions.haveOneOwner(owner, sessionId).catch(() => gone()));
  return (isOwn && (await results.find(reference))) || gone();
}

async function bytesOf({ results }: Rooms, stored: StoredResult, { offset, limit }: { offset: number; limit: number }) {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of results.read(stored, offset, new AbortController().signal)) {
    pieces.push(piece);
    length += piece.length;
    if (length >= limit) break;
  }
  return Buffer.concat(pieces).subarray(0, limit);
}

/** How many of the bytes belong to whole characters. */
function completeBytes(text: Buffer): number {
  const last = charactersUpTo(text, text.length - 1).length; // where the last character begins
  const begins = text[last] ?? 0;
  const needed = begins < 0x80 ? 1 : begins < 0xe0 ? 2 : begins < 0xf0 ? 3 : 4;
  return last + needed > text.length ? last : text.length;
}

export const resultTools = [readResult];
