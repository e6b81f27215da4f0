// Our server, with the peer as its client.

import type { ConnectRouter, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { PeerClient } from "../../independent-peer/client.ts";
import type { CallOptions } from "../../independent-peer/client-call.ts";
import type { BothEnds } from "./both-ends.ts";

export type Echo = Partial<ServiceImpl<typeof EchoService>>;

let services = 0;

export async function serving(ends: BothEnds, echo: Echo) {
  const service = `echo-${services++}`;
  const routes = (router: ConnectRouter) => router.service(EchoService, echo);
  const server = await serveOnNats(ends.bus, { service, instance: "one", routes });
  const connection = await ends.connectPeer();
  const client = new PeerClient(connection, service);
  return { service, connection, client, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

export const streamed: CallOptions = { window: { messages: 64, bytes: 65_536 } };

export const plain = {
  unary: (request) => request,
  async *serverStream(request) {
    yield request;
    yield request;
  },
  async clientStream(requests) {
    return { value: Buffer.concat((await Array.fromAsync(requests)).map(({ value }) => value)) };
  },
  async *bidi(requests) {
    yield* requests;
  },
} satisfies Echo;

/** An implementation whose calls hang, and the contexts of those that began. */
export function hanging() {
  const contexts: HandlerContext[] = [];
  const hang = (context: HandlerContext) => {
    contexts.push(context);
    return new Promise<never>((_, reject) => {
      context.signal.addEventListener("abort", () => reject(context.signal.reason), { once: true });
    });
  };
  const echo: Echo = {
    ...plain,
    unary: (_request, context) => hang(context),
    // biome-ignore lint/correctness/useYield: it never gets so far
    async *serverStream(_request, context) {
      await hang(context);
    },
  };
  return { contexts, echo };
}
