import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

interface SeenRequest {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

export type Respond = (request: IncomingMessage, response: ServerResponse, body: string) => void;

export interface WebServer extends AsyncDisposable {
  readonly port: number;
  readonly seen: SeenRequest[];
  readonly connections: number;
}

/** A web server on one address of loopback that notes each connection and each request. */
export async function openWebServer(respond: Respond, host = "127.0.0.1", port = 0): Promise<WebServer> {
  const seen: SeenRequest[] = [];
  let connections = 0;
  const server = createServer(async (request, response) => {
    const { method = "", url = "", headers } = request;
    let body = "";
    try {
      for await (const chunk of request) body += chunk;
    } catch {
      return; // the client left in the middle
    }
    seen.push({ method, url, headers, body });
    respond(request, response, body);
  });
  server.on("connection", () => {
    connections += 1;
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, host, resolve));
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    get connections() {
      return connections;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
