import { createWriteStream, mkdirSync, type WriteStream } from "node:fs";
import { join } from "node:path";
import { finished } from "node:stream/promises";

export interface LogFiles extends AsyncDisposable {
  write(service: string, line: string): void;
}

/** One file a service, `<service>.log`, begun anew with each suite. */
export function openLogFiles(directory: string): LogFiles {
  mkdirSync(directory, { recursive: true });
  const streams = new Map<string, WriteStream>();
  const open = (service: string): WriteStream => {
    const stream = createWriteStream(join(directory, `${service}.log`));
    stream.on("error", () => {
      // A full disk takes the log, not the suite: the services themselves go on.
    });
    streams.set(service, stream);
    return stream;
  };
  return {
    write(service, line) {
      const stream = streams.get(service) ?? open(service);
      if (!stream.errored) stream.write(`${line}\n`);
    },
    async [Symbol.asyncDispose]() {
      await Promise.allSettled([...streams.values()].map((stream) => finished(stream.end())));
    },
  };
}
