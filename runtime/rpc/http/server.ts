// One port for HTTP/1.1 and HTTP/2, with or without TLS.
//
//   TCP ──▶ first bytes ──┬─▶ HTTP/1.1 ─┬─▶ request listener ──▶ Connect · gRPC · gRPC-Web · fallback
//                         └─▶ h2c ──────┘
//   TLS ──▶ ALPN ─────────┴─ likewise
//
// http-server-1  Stopping takes no new connection, tells HTTP/2 peers (GOAWAY), closes idle HTTP/1.1 connections, and finishes what is
//     in flight.
// http-server-2  After `drainTimeoutMs` all that is still at work on an answer, a call's handler or what serves a path, is told by its signal,
//     with `unavailable`, which its client gets as the answer or its end; what is then still open after a grace is cut.

import type { AddressInfo } from "node:net";
import type { Interceptor } from "@connectrpc/connect";
import { connectError } from "../../failure/connect.ts";
import { listen } from "../../http/listen.ts";
import { comesWithin } from "../../time/comes-within.ts";
import { AssemblyRoom, ROOM_PATIENCE_MS } from "../handling/messages/assembly.ts";
import { type BodyLimits, createSenderBytes } from "./body/request-body.ts";
import { noteShutdown } from "./connect/reply.ts";
import type { RequestListener } from "./messages.ts";
import { type ConnectOptions, createRequestListener, type RequestListenerOptions } from "./request-listener.ts";
import { ConnectionShares } from "./sockets/connections/connection-shares.ts";
import { Connections } from "./sockets/connections/connections.ts";
import { createPlainDoor, createTlsDoor, type TlsFiles } from "./sockets/doors.ts";
import { toOriginForm } from "./sockets/request-target.ts";

export type { Admit } from "./request-listener.ts";
export type { TlsFiles } from "./sockets/doors.ts";

export interface HttpServerOptions extends Omit<RequestListenerOptions, "connect" | "body"> {
  /** 127.0.0.1 unless told: a server is seen from other machines only when somebody wants it. */
  host?: string;
  /** A free one unless told. */
  port?: number;
  tls?: TlsFiles;
  interceptors?: Interceptor[];
  /** The largest message that is read; 64 MiB unless told. */
  readMaxBytes?: number;
  /** What bodies may cost, where it is not the default. */
  body?: Partial<BodyLimits>;
  /** How many connections one address may have open; any number unless told. */
  connectionsOfAddress?: number;
  /** How long stopping waits for what is in flight; 10 s unless told. */
  drainTimeoutMs?: number;
}

export interface HttpServer extends AsyncDisposable {
  /** Where it is reached, without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** For connections from now on; without TLS there is nothing to renew. */
  renewCertificate(files: TlsFiles): void;
}

const READ_MAX_BYTES = 64 * 1024 * 1024;

/** How long handlers have to end their calls once they are aborted. */
const ABORT_GRACE_MS = 500;

/** Throws `failed_precondition` when the port is taken, `unavailable` when it cannot be had otherwise. */
export async function serveOnHttp(options: HttpServerOptions): Promise<HttpServer> {
  const { host = "127.0.0.1", port = 0, drainTimeoutMs = 10_000 } = options;
  const shutdown = new AbortController();
  const shares = new ConnectionShares(options.connectionsOfAddress ?? Number.POSITIVE_INFINITY);
  const connections = new Connections(shares);
  const [connect, body] = [connectOptions(options), bodyLimits(options)];
  const serve = createRequestListener({ ...options, connect, body });
  const listener: RequestListener = (request, response) => {
    toOriginForm(request);
    noteShutdown(response, shutdown.signal);
    connections.trackAnswer(request, response);
    if (!shares.refuses(request, response)) serve(request, response);
  };
  const secure = options.tls && createTlsDoor(options.tls, listener, connections);
  const server = secure ?? createPlainDoor(listener, connections);
  const address = await listen(server, host, port);

  async function drain(): Promise<void> {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    connections.closeGently(); // http-server-1
    if (await comesWithin(drainTimeoutMs, closed)) return;
    shutdown.abort(connectError("unavailable", "the server is stopping", { reason: "INSTANCE_STOPPING" })); // http-server-2
    if (await comesWithin(ABORT_GRACE_MS, closed)) return;
    connections.cut();
    await closed;
  }

  let draining: Promise<void> | undefined;
  return {
    url: urlFromAddress(address, options.tls !== undefined),
    port: address.port,
    renewCertificate: (files) => secure?.setSecureContext({ ...files }),
    [Symbol.asyncDispose]() {
      draining ??= drain();
      return draining;
    },
  };
}

/**
 * A client on a bad line sends its message in this time; four of the largest messages are in flight on a connection, and of all that
 * are large, as many are read at once.
 */
function bodyLimits({ readMaxBytes = READ_MAX_BYTES, body }: HttpServerOptions): BodyLimits {
  const paces = { graceMs: 30_000, bytesPerSecond: 4 * 1024, idleMs: 120_000, roomPatienceMs: ROOM_PATIENCE_MS };
  const { connectionBytes = 4 * readMaxBytes } = body ?? {};
  const holdFor = createSenderBytes(2 * connectionBytes);
  return { ...paces, holdFor, room: new AssemblyRoom(), ...body, connectionBytes };
}

function connectOptions({ interceptors = [], readMaxBytes = READ_MAX_BYTES }: HttpServerOptions): ConnectOptions {
  // a misspelt field of JSON would fail open: a restriction that nobody reads
  return { jsonOptions: { ignoreUnknownFields: false }, interceptors, readMaxBytes };
}

function urlFromAddress({ address, family, port }: AddressInfo, isSecure: boolean): string {
  const host = family === "IPv6" ? `[${address}]` : address;
  return `${isSecure ? "https" : "http"}://${host}:${port}`;
}
