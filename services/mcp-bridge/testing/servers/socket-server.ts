import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import type { IncomingHttpHeaders } from "node:http";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";
import { oddServer } from "../connection.ts";

export interface SocketServer extends AsyncDisposable {
  readonly url: string;
  readonly connections: number;
  /** Of the last connection. */
  readonly headers: IncomingHttpHeaders;
  /** Ends all connections, without a word. */
  cut(): void;
}

/** A server of its own process for each connection, behind a socket, one message a line. */
export async function openTcpServer(scheme = "tcp"): Promise<SocketServer> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    const child = startServer(() => socket.destroy());
    socket.on("error", () => {}); // it may be cut
    socket.on("close", () => child.kill("SIGKILL"));
    socket.pipe(child.stdin);
    child.stdout.pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    headers: {},
    get connections() {
      return connections;
    },
    cut,
    [Symbol.asyncDispose]: async () => {
      cut();
      server.close();
    },
  };
}

/** The same behind a WebSocket, one message a frame; one of `subprotocol: false` knows none. */
export async function openWebSocketServer({ subprotocol }: { subprotocol: boolean }): Promise<SocketServer> {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0, handleProtocols: () => subprotocol && "mcp" });
  let connections = 0;
  let headers: IncomingHttpHeaders = {};
  server.on("connection", (socket: WebSocket, request) => {
    connections += 1;
    headers = request.headers;
    const child = startServer(() => socket.terminate());
    socket.on("error", () => {}); // it may be cut
    socket.on("close", () => child.kill("SIGKILL"));
    socket.on("message", (data) => child.stdin.write(`${data}\n`));
    createInterface({ input: child.stdout }).on("line", (line) => socket.send(line));
  });
  await once(server, "listening");
  const cut = () => {
    for (const socket of server.clients) socket.terminate();
  };
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    get headers() {
      return headers;
    },
    get connections() {
      return connections;
    },
    cut,
    [Symbol.asyncDispose]: async () => {
      cut();
      server.close();
    },
  };
}

function startServer(onExit: () => void): ChildProcessByStdio<Writable, Readable, null> {
  const child = spawn(process.execPath, [oddServer], { stdio: ["pipe", "pipe", "ignore"] });
  child.stdin.on("error", () => {}); // it is gone
  child.once("exit", onExit);
  return child;
}
