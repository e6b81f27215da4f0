import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { z } from "zod";
import { Effect } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuseLocally } from "#runtime/failure/local-failure.ts";
import { charactersUpTo } from "#runtime/results/utf8.ts";
import { openAllowed } from "../allowed.ts";
import { defineBuiltIn } from "../built-in.ts";
import { failureFromFileError, refuseUnlessFile } from "../file-errors.ts";

const DEFAULT_BYTES = 64 * 1024;
const MAX_BYTES = 1024 * 1024;

const size = z.number().int();

export const fsRead = defineBuiltIn({
  name: "fs_read",
  description:
    "Reads a file, or a part of it. A relative path counts from the first allowed directory. A long file comes in parts: ask again with the `nextOffset` of the answer.",
  effect: Effect.PURE,
  arguments: z.strictObject({
    path: z.string().min(1).describe("The file, absolute or relative to the first allowed directory."),
    offset: size.min(0).default(0).describe("The first byte to read."),
    limit: size.min(4).max(MAX_BYTES).default(DEFAULT_BYTES).describe("How many bytes to read at most."),
    encoding: z.enum(["utf8", "base64"]).default("utf8").describe("The form of `content`; base64 for what is no text."),
  }),
  async run({ path, offset, limit, encoding }, { policy }) {
    const allowed = await openAllowed(policy.allowedPaths);
    await using held = await allowed.hold(path);
    refuseUnlessFile(held.stats, path);
    const oneMore = limit + 1; // which tells whether a character goes on behind the part
    const found = await readPart(held.link, offset, oneMore).catch((error: unknown) => {
      throw failureFromFileError(error, path);
    });
    const isEnd = found.bytes.length < oneMore;
    const cut = encoding === "utf8" ? charactersUpTo(found.bytes, limit) : found.bytes.subarray(0, limit);
    const bytes = cut.length > 0 ? cut : found.bytes; // no character is as long as a part
    const content = encoding === "utf8" ? textFromBytes(bytes, path, offset) : bytes.toString("base64");
    return {
      path: held.location,
      size: found.size,
      offset,
      bytes: bytes.length,
      encoding,
      content,
      ...(!isEnd && { nextOffset: offset + bytes.length }),
    };
  },
});

async function readPart(link: string, offset: number, limit: number): Promise<{ bytes: Buffer; size: number }> {
  await using file = await open(link, constants.O_RDONLY | constants.O_NONBLOCK);
  const { size } = await file.stat();
  return { bytes: await readUpTo(file, offset, limit), size };
}

/** A read may bring less than was asked for before the end is reached. */
async function readUpTo(file: FileHandle, offset: number, limit: number): Promise<Buffer> {
  const buffer = Buffer.alloc(limit);
  let length = 0;
  while (length < limit) {
    const { bytesRead } = await file.read(buffer, length, limit - length, offset + length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

function textFromBytes(bytes: Buffer, path: string, offset: number): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    const isInside = offset > 0 && ((bytes[0] ?? 0) & 0xc0) === 0x80;
    const words = isInside
      ? `offset ${offset} is inside of a character of`
      : "there are bytes that are no UTF-8 text in";
    return refuseLocally("invalid_argument", `${words} ${JSON.stringify(path)}: read it with "encoding":"base64"`);
  }
}
