import { createServer as createHttp1Server } from "node:http";
import {
  createServer as createHttp2Server,
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerOptions,
} from "node:http2";
import type { Server, Socket } from "node:net";
import type { RequestListener } from "../messages.ts";
import type { Connections } from "./connections/connections.ts";
import { tellVersion } from "./first-bytes.ts";
import { asksForWebSocket, serveUpgrades } from "./upgrades.ts";

export interface TlsFiles {
  /** PEM, as text. */
  cert: string;
  key: string;
}

/**
 * How long a peer may take to say what it speaks, and again to send the head of a request. A client that makes large requests, on a
 * machine that has little time for it, is often connected for long before it writes: cut off, it could not be told why.
 */
const HEAD_TIMEOUT_MS = 30_000;

/**
 * Windows wide enough for results of many megabytes, a bound on what one connection may have open, and on the head of a request: a
 * field beyond it ends the connection (nghttp2), so clients are told before.
 */
const HTTP2_OPTIONS: ServerOptions = {
  settings: { initialWindowSize: 1024 * 1024, maxConcurrentStreams: 1_000, maxHeaderListSize: 64 * 1024 },
};
const CONNECTION_WINDOW_BYTES = 8 * 1024 * 1024;

/** Proxies keep connections idle for up to ten minutes; on one that is closed at that moment, the next request would be lost. */
const IDLE_MS = 620_000;

/** No time limit for a whole request, since a stream of messages may go on for hours. */
const HTTP1_OPTIONS = {
  requestTimeout: 0,
  keepAliveTimeout: IDLE_MS,
  headersTimeout: HEAD_TIMEOUT_MS,
  shouldUpgradeCallback: asksForWebSocket,
};

/** HTTP/1.1 and h2c, told apart by the first bytes. */
export function createPlainDoor(listener: RequestListener, connections: Connections): Server {
  const http2 = createHttp2Server(HTTP2_OPTIONS, listener);
  http2.on("session", (session) => openSession(session, connections));
  http2.on("sessionError", () => {}); // a peer that breaks the protocol is disconnected, and nothing more

  // The server that listens is the one of HTTP/1.1, which needs that for its timeouts; it gets its connections from here.
  const http1 = createHttp1Server(HTTP1_OPTIONS, listener);
  serveUpgrades(http1, listener);
  const serveHttp1 = takeListeners(http1, "connection");
  http1.on("connection", (socket: Socket) => {
    connections.trackSocket(socket);
    socket.setNoDelay(true);
    tellVersion(socket, HEAD_TIMEOUT_MS, (version) => {
      connections.trackVersion(socket, version);
      if (version === "http2") {
        socket.allowHalfOpen = false; // a peer that has ended its side is gone: its calls end with it
        connections.beginSession(socket, () => http2.emit("connection", socket));
      } else serveHttp1(socket);
    });
  });
  return http1;
}

/** HTTP/1.1 and HTTP/2 over TLS, told apart by ALPN. */
export function createTlsDoor(tls: TlsFiles, listener: RequestListener, connections: Connections): Http2SecureServer {
  const options = { ...HTTP2_OPTIONS, ...HTTP1_OPTIONS, handshakeTimeout: HEAD_TIMEOUT_MS, allowHTTP1: true };
  const server = createSecureServer({ ...options, ...tls }, listener);
  serveUpgrades(server, listener);
  server.on("connection", (socket: Socket) => connections.trackSocket(socket));
  const serve = takeListeners(server, "secureConnection");
  server.on("secureConnection", (socket) => {
    const version = socket.alpnProtocol === "h2" ? "http2" : "http1";
    connections.trackVersion(socket, version);
    if (version === "http2") connections.beginSession(socket, () => serve(socket));
    else serve(socket);
  });
  server.on("session", (session) => openSession(session, connections));
  server.on("sessionError", () => {}); // as above
  return server;
}

/** Takes over what a server does at an event with a socket; gives what does it. */
function takeListeners(server: Server, event: string): (socket: Socket) => void {
  const listeners = server.listeners(event);
  server.removeAllListeners(event);
  return (socket) => {
    for (const listener of listeners) Reflect.apply(listener, server, [socket]);
  };
}

function openSession(session: ServerHttp2Session, connections: Connections): void {
  session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
  connections.trackSession(session);
}
