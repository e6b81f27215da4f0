import type { BytesValue } from "@bufbuild/protobuf/wkt";
import { ConnectError, createClient, type Interceptor, type ServiceImpl } from "@connectrpc/connect";
import { expect } from "vitest";
import { createNatsTransport } from "../client/transport.ts";
import { serveOnNats } from "../server/server.ts";
import { EchoService } from "./echo-service.ts";
import type { EchoWorld } from "./echo-world.ts";

type Echo = Partial<ServiceImpl<typeof EchoService>>;
let lastService = 0;

/** A server of these streams and a client of it, each on a connection of its own. */
export async function openStreams(
  world: EchoWorld,
  implementation: Echo,
  options: { server?: Interceptor[]; client?: Interceptor[] } = {},
) {
  lastService += 1;
  const service = `stream-${lastService}`;
  const server = await serveOnNats(await world.connect(), {
    service,
    routes: (router) => router.service(EchoService, implementation),
    interceptors: options.server ?? [],
  });
  const transport = createNatsTransport(await world.connect(), { service, interceptors: options.client ?? [] });
  return { client: createClient(EchoService, transport), [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

export const byte = (n: number) => ({ value: new Uint8Array([n]) });

export async function* bytes(count: number): AsyncGenerator<{ value: Uint8Array<ArrayBuffer> }> {
  for (let n = 0; n < count; n += 1) yield byte(n);
}

export async function firstBytes(messages: AsyncIterable<BytesValue>): Promise<number[]> {
  const all: number[] = [];
  for await (const message of messages) all.push(message.value[0] ?? -1);
  return all;
}

export async function failureOf(messages: AsyncIterable<BytesValue>, onMessage: (n: number) => void = () => {}) {
  try {
    for await (const message of messages) onMessage(message.value[0] ?? -1);
  } catch (error) {
    expect(error).toBeInstanceOf(ConnectError);
    return error as ConnectError;
  }
  throw new Error("the stream ended well");
}
