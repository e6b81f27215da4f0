import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface HttpServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

/** An HTTP server on a port of this machine, for MCP at `/mcp`. */
export async function listen(
  serve: (request: IncomingMessage, response: ServerResponse) => unknown,
  port = 0,
): Promise<HttpServer> {
  const server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}/mcp`,
    port: address.port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
