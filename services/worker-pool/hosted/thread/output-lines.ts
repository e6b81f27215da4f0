import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";

const MAX_PIECE_LENGTH = 64 * 1024;

/** Calls back for each line of a stream; one longer than 64 KiB comes in pieces. */
export function pipeLines(stream: Readable, onLine: (line: string) => void): void {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  stream.on("data", (chunk: Buffer) => {
    const lines = (rest + decoder.write(chunk)).split(/\r?\n/);
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
    if (rest.length < MAX_PIECE_LENGTH) return;
    onLine(rest);
    rest = "";
  });
  stream.once("end", () => {
    if (rest !== "") onLine(rest);
  });
}
