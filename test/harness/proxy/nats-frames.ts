/** One operation of the NATS client protocol, as it goes over the wire. */
export interface NatsFrame {
  /** `PUB`, `HPUB`, `MSG`, `HMSG` carry a payload; whatever else there is goes by its first word. */
  readonly verb: string;
  readonly subject: string;
  /** Where the answer goes; empty if none is wanted. */
  readonly reply: string;
  /** Without headers. */
  readonly payload: Buffer;
  /** The whole frame as it came. */
  readonly bytes: Buffer;
}

const lineEnd = Buffer.from("\r\n");
const empty = Buffer.alloc(0);

/** Cuts what one side sends into frames; what is incomplete waits for the next chunk. */
export function createFrameSplitter(): (chunk: Buffer) => NatsFrame[] {
  let rest: Buffer = empty;
  return (chunk) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const frames: NatsFrame[] = [];
    for (;;) {
      const frame = firstFrame(rest);
      if (frame === undefined) return frames;
      frames.push(frame);
      rest = rest.subarray(frame.bytes.length);
    }
  };
}

function firstFrame(bytes: Buffer): NatsFrame | undefined {
  const end = bytes.indexOf(lineEnd);
  if (end < 0) return undefined;
  const bodyStart = end + lineEnd.length;
  const [verb = "", ...words] = bytes.toString("latin1", 0, end).split(" ");
  const kind = verb.toUpperCase();
  if (!["PUB", "HPUB", "MSG", "HMSG"].includes(kind)) {
    return { verb: kind, subject: "", reply: "", payload: empty, bytes: bytes.subarray(0, bodyStart) };
  }
  const hasHeaders = kind.startsWith("H");
  const size = Number(words.at(-1));
  const frameEnd = bodyStart + size + lineEnd.length;
  if (bytes.length < frameEnd) return undefined;
  const headerBytes = hasHeaders ? Number(words.at(-2)) : 0;
  const places = words.slice(0, hasHeaders ? -2 : -1); // subject, of the server's also its id, then maybe a reply
  return {
    verb: kind,
    subject: places[0] ?? "",
    reply: places[kind.endsWith("MSG") ? 2 : 1] ?? "",
    payload: bytes.subarray(bodyStart + headerBytes, bodyStart + size),
    bytes: bytes.subarray(0, frameEnd),
  };
}
