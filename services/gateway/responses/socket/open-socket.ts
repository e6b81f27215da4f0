import { type WebSocket, WebSocketServer } from "ws";
import { connectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { senderOf } from "#runtime/rpc/http/messages.ts";
import { type Upgrade, upgradeOf } from "#runtime/rpc/http/sockets/upgrades.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { requireOrigin } from "../../access/cross-origin.ts";
import type { ResponsesExchange } from "../responses-exchange.ts";
import { converse } from "./conversation.ts";
import { SocketTurns } from "./socket-turns.ts";

/** Resolves when the connection is over. What is wrong with the request for it is refused; from then on it says so itself. */
export async function openSocket(exchange: ResponsesExchange): Promise<void> {
  const { request, parts, options } = exchange;
  const upgrade = upgradeOf(request);
  if (upgrade === undefined)
    refuse("not_found", "there is no GET /v1/responses here, but for a WebSocket", { reason: "PATH_NOT_FOUND" });
  requireOrigin(exchange);
  const socket = await unlessAborted(shakeHands(exchange, upgrade), options.signal);
  const turns = new SocketTurns(exchange);
  const sender = senderOf(request);
  await converse(socket, {
    take: (text, send) => turns.take(text, send),
    sender,
    connection: upgrade.socket,
    hold: (bytes) => parts.holdFor(sender, bytes),
    stopping: parts.stopping,
  });
}

function shakeHands({ request, parts }: ResponsesExchange, { socket, head }: Upgrade): Promise<WebSocket> {
  if ("stream" in request) throw new Error("a request over HTTP/2 brings no connection");
  const server = new WebSocketServer({ noServer: true, clientTracking: false, maxPayload: parts.maxBytes });
  return new Promise((resolve, reject) => {
    server.once("wsClientError", (fault) =>
      reject(connectError("invalid_argument", fault.message, { reason: "REQUEST_MALFORMED" })),
    );
    server.handleUpgrade(request, socket, head, resolve);
  });
}
