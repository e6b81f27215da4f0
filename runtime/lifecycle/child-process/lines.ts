import type { Readable } from "node:stream";
import { isErrno } from "../../failure/errno.ts";
import { LocalFailure } from "../../failure/local-failure.ts";

const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;

export interface LinesOptions {
  /** A longer line is an error that names both sizes; 128 MiB unless told. */
  maxLineBytes?: number | undefined;
  /** Leaves out text after the last newline: the half of a line that its writer did not live to end. */
  wholeOnly?: boolean;
}

/**
 * The lines of a stream without their ends (`\n` or `\r\n`), decoded as UTF-8. Reading goes at the pace of the consumer. Text
 * after the last newline is a line too, unless told. Bytes are joined and decoded once a line, so that long lines cost no more than
 * their length.
 */
export async function* readLines(stream: Readable, options: LinesOptions = {}): AsyncGenerator<string> {
  const { maxLineBytes = 128 * 1024 * 1024, wholeOnly = false } = options;
  let pending: Buffer[] = [];
  let pendingBytes = 0;

  const take = (end: Buffer): string => {
    const line = pending.length === 0 ? end : Buffer.concat([...pending, end]);
    pending = [];
    pendingBytes = 0;
    refuseOver(maxLineBytes, line.length);
    return textFromLine(line);
  };

  for await (const chunk of readChunks(stream)) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      yield take(chunk.subarray(start, end));
      start = end + 1;
    }
    if (start === chunk.length) continue;
    pending.push(chunk.subarray(start));
    pendingBytes += chunk.length - start;
    refuseOver(maxLineBytes, pendingBytes);
  }
  if (pendingBytes > 0 && !wholeOnly) yield take(Buffer.alloc(0));
}

/** A stream that is torn down ends here like one that ends: the exit of its process tells why. */
export async function* readChunks(stream: Readable): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of stream) yield chunk as Buffer;
  } catch (error) {
    if (!isErrno(error, "ERR_STREAM_PREMATURE_CLOSE")) throw error;
  }
}

function textFromLine(line: Buffer): string {
  const end = line.at(-1) === CARRIAGE_RETURN ? line.length - 1 : line.length;
  return line.toString("utf8", 0, end);
}

function refuseOver(maxLineBytes: number, bytes: number): void {
  if (bytes <= maxLineBytes) return;
  throw new LocalFailure(
    "resource_exhausted",
    `a line of at least ${bytes} bytes is over the limit of ${maxLineBytes} bytes`,
    {
      kind: "line_too_long",
    },
  );
}
