import { createWriteStream, mkdirSync, type WriteStream } from "node:fs";
import { join } from "node:path";
import { finished } from "node:stream/promises";

export interface LogFiles extends AsyncDisposable {
  write(room: string, line: string): void;
}

/** One file a service, `<room>.log`, begun anew with each suite. */
export function openLogFiles(directory: string): LogFiles {
  mkdirSync(directory, { recursive: true });
  const streams = new Map<string, WriteStream>();
  const open = (room: string): WriteStream => {
    const stream = createWriteStream(join(directory, `${room}.log`));
    stream.on("error", () => {
      // A full disk takes the log, not the suite: the services themselves go on.
    });
    streams.set(room, stream);
    return stream;
  };
  return {
    write(room, line) {
      const stream = streams.get(room) ?? open(room);
      if (!stream.errored) stream.write(`${line}\n`);
    },
    async [Symbol.asyncDispose]() {
      await Promise.allSettled([...streams.values()].map((stream) => finished(stream.end())));
    },
  };
}
