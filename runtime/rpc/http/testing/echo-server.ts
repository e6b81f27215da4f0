import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { afterEach } from "vitest";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { type HttpServer, type HttpServerOptions, serveOnHttp } from "../server.ts";

/** What the tests of a file open, closed after each of them, last first. */
export const stack: AsyncDisposable[] = [];

afterEach(async () => {
  for (const opened of stack.splice(0).reverse()) await opened[Symbol.asyncDispose]();
});

export const bytes = (text: string) => create(BytesValueSchema, { value: new TextEncoder().encode(text) });
export const textOf = (message: { value: Uint8Array }) => new TextDecoder().decode(message.value);

export const echo: Partial<ServiceImpl<typeof EchoService>> = {
  unary: (request) => request,
  async *serverStream(request) {
    for (let n = 1; n <= 3; n++) yield bytes(`${textOf(request)} ${n}`);
  },
  async clientStream(requests) {
    const texts: string[] = [];
    for await (const request of requests) texts.push(textOf(request));
    return bytes(texts.join("+"));
  },
  async *bidi(requests) {
    for await (const request of requests) yield request;
  },
};

export async function openServer(
  implementation: Partial<ServiceImpl<typeof EchoService>> = echo,
  options: Partial<HttpServerOptions> = {},
): Promise<HttpServer> {
  const routes: HttpServerOptions["routes"] = (router) => router.service(EchoService, implementation);
  const server = await serveOnHttp({ routes, drainTimeoutMs: 2_000, ...options });
  stack.push(server);
  return server;
}

/** A connection that says what it is told to, byte for byte. */
export async function openRaw(server: HttpServer): Promise<{ socket: Socket; text: () => string }> {
  const socket = connect(server.port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
  });
  socket.on("error", () => {}); // its end is what the tests look at
  stack.push({
    async [Symbol.asyncDispose]() {
      socket.destroy();
    },
  });
  await once(socket, "connect");
  return { socket, text: () => text };
}
