import { type IncomingMessage, ServerResponse } from "node:http";
import type { Server } from "node:net";
import type { Duplex } from "node:stream";
import type { HttpRequest, RequestListener } from "../messages.ts";

/** The connection of a request that asks to speak something else on it (RFC 9110, 7.8), and what was read of it behind the head. */
export interface Upgrade {
  readonly socket: Duplex;
  readonly head: Buffer;
}

const upgrades = new WeakMap<HttpRequest, Upgrade>();

/** What a WebSocket is made of; undefined for a request that asks for none. Who takes it leaves the response alone. */
export function upgradeOf(request: HttpRequest): Upgrade | undefined {
  return upgrades.get(request);
}

/** All else that may be asked for (h2c, mostly) is passed over, as HTTP allows: such a request is answered as any other. */
export function asksForWebSocket({ method, headers }: Pick<IncomingMessage, "method" | "headers">): boolean {
  return method === "GET" && headers.upgrade?.toLowerCase() === "websocket";
}

/**
 * Has requests for WebSockets go the way of all others, with a response of their own: they are counted, judged and refused alike, and
 * count as being answered until their connection closes.
 */
export function serveUpgrades(server: Server, listener: RequestListener): void {
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => {}); // its end is what is looked at
    const response = new ServerResponse(request);
    response.shouldKeepAlive = false;
    response.assignSocket(request.socket);
    response.once("finish", () => socket.end());
    upgrades.set(request, { socket, head });
    listener(request, response);
  });
}
