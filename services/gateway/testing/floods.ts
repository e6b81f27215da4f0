// What costs a client next to nothing, and a server much that takes it as it comes.

import { type ClientHttp2Session, connect } from "node:http2";
import { type OpenRequest, openStream, type ProbeRequest } from "./http-probe.ts";

type Head = Omit<ProbeRequest, "body">;

/** The types that a page may send to another origin without asking it. */
export const typesOfPages = [
  "text/plain",
  "text/plain;application/json",
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=x",
] as const;

/** Paths of no protocol that change something. */
export const plainPaths = ["/api/runs/r/tool-results", "/api/tool-calls/c/acknowledgement"] as const;

/** A message of so many bytes. */
export function bytesValue(length: number): Buffer {
  return Buffer.concat([Buffer.from([0x0a, ...varint(length)]), Buffer.alloc(length, 65)]);
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}

/** Requests on one connection of which no more than a part is sent. */
export function sendHalf(url: string, head: Head, { part, count }: { part: Uint8Array; count: number }) {
  const session = openSession(url);
  const requests: Omit<OpenRequest, typeof Symbol.dispose>[] = Array.from({ length: count }, () =>
    openStream(session, head),
  );
  for (const request of requests) request.write(part);
  return { requests, [Symbol.dispose]: () => session.destroy() };
}

/** Streams that are opened and reset at once, 50,000 a second, until so many were or the server has had enough. */
export function resetStreams(url: string, head: Head, count: number) {
  const session = openSession(url);
  let opened = 0;
  const opening = setInterval(() => {
    for (let n = 0; n < 250 && opened < count && !session.destroyed && !session.closed; n += 1, opened += 1)
      openStream(session, head).reset();
  }, 5);
  return {
    get opened() {
      return opened;
    },
    get isOver() {
      return opened >= count || session.destroyed || session.closed;
    },
    [Symbol.dispose]() {
      clearInterval(opening);
      session.destroy();
    },
  };
}

/** Streams that are asked for and then left as they are, a thousand on a connection. */
export function openIdleStreams(
  url: string,
  head: Head,
  { body, count }: { body: Uint8Array; count: number },
): Disposable {
  const sessions = Array.from({ length: Math.ceil(count / 1_000) }, () => openSession(url));
  for (let n = 0; n < count; n += 1) openStream(sessions[n % sessions.length]!, head).end(body);
  return {
    [Symbol.dispose]() {
      for (const session of sessions) session.destroy();
    },
  };
}

function openSession(url: string): ClientHttp2Session {
  const session = connect(url);
  session.on("error", () => {}); // the server may well end it
  return session;
}
