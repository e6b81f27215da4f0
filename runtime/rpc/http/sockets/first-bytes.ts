import type { Socket } from "node:net";

/** What every HTTP/2 connection starts with (RFC 9113, 3.4); no HTTP/1 request can. */
const HTTP2_PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export type HttpVersion = "http1" | "http2";

/** Undefined while the bytes could still become either. */
export function decideVersion(bytes: Buffer): HttpVersion | undefined {
  const length = Math.min(bytes.length, HTTP2_PREFACE.length);
  if (!bytes.subarray(0, length).equals(HTTP2_PREFACE.subarray(0, length))) return "http1";
  return length === HTTP2_PREFACE.length ? "http2" : undefined;
}

/**
 * Reads as many bytes of a connection as tell the version, puts them back and hands the connection over. One that says
 * nothing decisive in time, or goes before, is destroyed. What has arrived in time counts, also where this process was too busy to read it.
 */
export function tellVersion(
  socket: Socket,
  timeoutMs: number,
  take: (version: HttpVersion, socket: Socket) => void,
): void {
  let seen = Buffer.alloc(0);

  function letGo(): void {
    clearTimeout(timer);
    clearImmediate(late);
    socket.off("readable", onReadable);
    socket.off("end", onGone);
    socket.off("error", onGone);
    socket.off("close", onGone);
  }

  function onGone(): void {
    letGo();
    socket.on("error", () => {}); // the connection is gone either way
    socket.destroy();
  }

  function onReadable(): void {
    for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null)
      seen = Buffer.concat([seen, chunk]);
    const version = decideVersion(seen);
    if (!version) return;
    letGo();
    socket.unshift(seen);
    take(version, socket);
  }

  let late: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    late = setImmediate(onGone); // Node looks at timers before it reads
  }, timeoutMs);
  socket.on("readable", onReadable);
  socket.on("end", onGone);
  socket.on("error", onGone);
  socket.on("close", onGone);
}
