import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface OrderServer extends AsyncDisposable {
  readonly url: string;
  /** Host and port, as the router's list of allowed inside addresses wants it. */
  readonly address: string;
  /** Refuses from here on, as a service that was taken away does. */
  close(): Promise<void>;
}

/** Somebody's web service: `GET /orders?id=X` tells where order X is. */
export async function openOrderServer(): Promise<OrderServer> {
  const server = createServer((request, response) => {
    const id = new URL(request.url ?? "/", "http://orders").searchParams.get("id");
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id, status: "shipped" }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const close = async () => {
    if (!server.listening) return;
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  };
  return { url: `http://127.0.0.1:${port}/orders`, address: `127.0.0.1:${port}`, close, [Symbol.asyncDispose]: close };
}
