// The peer as a server, with our client of it.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createNatsTransport } from "#runtime/rpc/nats/client/transport.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { type Handler, PeerServer } from "../../independent-peer/server.ts";
import type { RawContext } from "../../independent-peer/server-call.ts";
import { type BothEnds, one } from "./both-ends.ts";

type Bytes = typeof BytesValueSchema;
export type EchoHandler = Handler<Bytes, Bytes>;
type Echo = Record<keyof typeof EchoService.method, EchoHandler>;

let services = 0;

const plain: Echo = {
  unary: (requests) => requests,
  async *serverStream(requests) {
    for await (const request of requests) yield* [request, request];
  },
  async *clientStream(requests) {
    yield { value: Buffer.concat((await Array.fromAsync(requests)).map(({ value }) => value)) };
  },
  bidi: (requests) => requests,
};

export async function serving(ends: BothEnds, echo: Partial<Echo>) {
  const service = `peer-${services++}`;
  const connection = await ends.connectPeer();
  const server = await PeerServer.open(connection, service);
  const handlers = { ...plain, ...echo };
  for (const name of ["unary", "serverStream", "clientStream", "bidi"] as const) {
    server.serve(EchoService.method[name], handlers[name]);
  }
  await server.ready();
  const client = createClient(EchoService, createNatsTransport(ends.bus, { service }));
  return { service, connection, server, client, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

export async function* sequence<T>(...messages: T[]): AsyncGenerator<T> {
  yield* messages;
}

/** Handlers whose calls hang, and the contexts of those that began. */
export function hanging() {
  const contexts: RawContext[] = [];
  const hang = async function* (
    _requests: unknown,
    context: RawContext,
  ): AsyncGenerator<MessageInitShape<Bytes>, void> {
    contexts.push(context);
    await new Promise<never>((_, reject) => {
      context.signal.addEventListener("abort", () => reject(context.signal.reason), { once: true });
    });
    yield one;
  };
  return { contexts, echo: { unary: hang, serverStream: hang } };
}
