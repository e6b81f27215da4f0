import { ServerResponse } from "node:http";
import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { HttpRequest, HttpResponse } from "../../messages.ts";
import type { HttpVersion } from "../first-bytes.ts";
import { BrokenSessions } from "./broken-sessions.ts";
import { type ConnectionShares, peerOf } from "./connection-shares.ts";

/** What a connection speaks; HTTP/2 sessions know by themselves what they are answering. */
type Speech = { version: HttpVersion; answers: Set<ServerResponse> };

/** Of TCP, on a silent connection: a peer that vanished without a word would have what it watches for ever. */
const PROBES = { initialDelay: 30_000, interval: 10_000, count: 3 };

/** What is open at a server, so that it can be closed without breaking off an answer. */
export class Connections {
  /** By peer, what has not said a word, or has not ended its TLS handshake: HTTP is spoken on another socket then. */
  readonly #undecided = new Map<string, Socket>();
  readonly #speechBySocket = new Map<Socket, Speech>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #broken = new BrokenSessions();
  readonly #shares: Pick<ConnectionShares, "track" | "isCrowded">;
  #isClosing = false;

  constructor(shares: Pick<ConnectionShares, "track" | "isCrowded">) {
    this.#shares = shares;
  }

  trackSocket(socket: Socket): void {
    this.#shares.track(socket);
    socket.setKeepAlive(true, PROBES.initialDelay, PROBES.interval, PROBES.count);
    const peer = peerOf(socket);
    this.#undecided.set(peer, socket);
    socket.once("close", () => this.#undecided.delete(peer));
    if (this.#isClosing) socket.destroy();
  }

  /** It is known from here on what is spoken there. */
  trackVersion(socket: Socket, version: HttpVersion): void {
    if (!this.#undecided.delete(peerOf(socket))) return; // it has closed
    this.#speechBySocket.set(socket, { version, answers: new Set() });
    socket.once("close", () => this.#speechBySocket.delete(socket));
  }

  /** Has a session of HTTP/2 begin on the socket: at once, unless others of its address broke lately. */
  beginSession(socket: Socket, serve: () => void): void {
    this.#broken.begin(socket, serve);
  }

  trackSession(session: ServerHttp2Session): void {
    this.#broken.watch(session);
    this.#sessions.add(session);
    session.once("close", () => this.#sessions.delete(session));
    if (this.#isClosing) session.close();
  }

  trackAnswer(request: HttpRequest, response: HttpResponse): void {
    const { socket } = request;
    const speech = this.#speechBySocket.get(socket);
    if (speech?.version !== "http1" || !(response instanceof ServerResponse)) return;
    speech.answers.add(response);
    if (this.#isClosing || this.#shares.isCrowded(socket)) response.shouldKeepAlive = false;
    response.once("close", () => {
      speech.answers.delete(response);
      if (this.#isClosing && speech.answers.size === 0) socket.destroySoon();
    });
  }

  /** What is idle or has not said a word goes, what is answering goes when it is done. */
  closeGently(): void {
    this.#isClosing = true;
    for (const session of this.#sessions) session.close();
    for (const socket of this.#undecided.values()) socket.destroy();
    for (const [socket, speech] of this.#speechBySocket) {
      if (speech.version !== "http1") continue;
      if (speech.answers.size === 0) socket.destroySoon();
      for (const response of speech.answers) if (!response.headersSent) response.shouldKeepAlive = false;
    }
  }

  cut(): void {
    for (const session of this.#sessions) session.destroy();
    for (const socket of this.#speechBySocket.keys()) socket.destroy();
  }
}
