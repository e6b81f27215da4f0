import type { BytesValue } from "@bufbuild/protobuf/wkt";
import {
  Code,
  ConnectError,
  createClient,
  type HandlerContext,
  type Interceptor,
  type ServiceImpl,
} from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { deliveryOf } from "./delivery.ts";
import { EchoService } from "./echo-service.fixture.ts";
import { type EchoWorld, openEchoWorld } from "./echo-world.fixture.ts";
import { serveOnNats } from "./server.ts";
import { createNatsTransport } from "./transport.ts";

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(async () => world[Symbol.asyncDispose]());

type Echo = Partial<ServiceImpl<typeof EchoService>>;
let lastService = 0;

async function openStreams(implementation: Echo, options: { server?: Interceptor[]; client?: Interceptor[] } = {}) {
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

const byte = (n: number) => ({ value: new Uint8Array([n]) });

async function* bytes(count: number): AsyncGenerator<{ value: Uint8Array<ArrayBuffer> }> {
  for (let n = 0; n < count; n += 1) yield byte(n);
}

async function firstBytes(messages: AsyncIterable<BytesValue>): Promise<number[]> {
  const all: number[] = [];
  for await (const message of messages) all.push(message.value[0] ?? -1);
  return all;
}

async function failureOf(messages: AsyncIterable<BytesValue>, onMessage: (n: number) => void = () => {}) {
  try {
    for await (const message of messages) onMessage(message.value[0] ?? -1);
  } catch (error) {
    expect(error).toBeInstanceOf(ConnectError);
    return error as ConnectError;
  }
  throw new Error("the stream ended well");
}

describe("a stream over NATS", () => {
  test("BUS-2 a server stream gives its messages in order, and ends", async () => {
    await using echoing = await openStreams({
      async *serverStream(request) {
        yield* bytes(request.value[0] ?? 0);
      },
    });
    expect(await firstBytes(echoing.client.serverStream(byte(200)))).toEqual([...Array(200).keys()]);
    expect(await firstBytes(echoing.client.serverStream(byte(0)))).toEqual([]);
  });

  test("BUS-2 a client stream is read to its end and answered once", async () => {
    await using echoing = await openStreams({
      async clientStream(requests) {
        return byte((await firstBytes(requests)).length);
      },
    });
    expect([...(await echoing.client.clientStream(bytes(150))).value]).toEqual([150]);
    expect([...(await echoing.client.clientStream(bytes(0))).value]).toEqual([0]);
  });

  test("BUS-2 a two-way stream answers while requests come, and after the caller has ended its half", async () => {
    await using echoing = await openStreams({
      async *bidi(requests) {
        let count = 0;
        for await (const request of requests) {
          count += 1;
          yield request;
        }
        yield byte(count);
      },
    });
    const answered: number[] = [];
    async function* oneAtATime() {
      for (let n = 0; n < 3; n += 1) {
        yield byte(10 + n);
        await until(() => answered.length === n + 1);
      }
    }
    for await (const answer of echoing.client.bidi(oneAtATime())) answered.push(answer.value[0] ?? -1);
    expect(answered).toEqual([10, 11, 12, 3]);
  });

  test("BUS-2 a stream carries metadata, headers with its first answer and trailers with its end", async () => {
    await using echoing = await openStreams({
      async *serverStream(_request, context) {
        context.responseHeader.set("x-back", context.requestHeader.get("x-there") ?? "");
        yield byte(1);
        context.responseTrailer.set("x-end", "ü done");
      },
    });
    const seen: string[] = [];
    const answers = echoing.client.serverStream(byte(0), {
      headers: { "x-there": "and back" },
      onHeader: (header) => seen.push(`${header.get("x-back")}`),
      onTrailer: (trailer) => seen.push(`${trailer.get("x-end")}`),
    });
    for await (const answer of answers) seen.push(`${answer.value[0]}`);
    expect(seen).toEqual(["and back", "1", "ü done"]);
  });

  test("BUS-2 an error ends a stream after the messages before it, with its metadata", async () => {
    await using echoing = await openStreams({
      async *serverStream(_request, context) {
        yield* bytes(3);
        context.responseTrailer.set("x-end", "early");
        throw new ConnectError("out of bytes", Code.OutOfRange, { "x-more": "1" });
      },
    });
    const seen: number[] = [];
    const error = await failureOf(echoing.client.serverStream(byte(0)), (n) => seen.push(n));
    expect(seen).toEqual([0, 1, 2]);
    expect([error.code, error.rawMessage]).toEqual([Code.OutOfRange, "out of bytes"]);
    expect([error.metadata.get("x-end"), error.metadata.get("x-more")]).toEqual(["early", "1"]);
    expect(deliveryOf(error)).toBeUndefined();
  });

  test("BUS-2 an implementation may answer a client stream before it has read it", async () => {
    await using echoing = await openStreams({
      async clientStream() {
        throw new ConnectError("I do not read", Code.FailedPrecondition);
      },
    });
    const error = await echoing.client.clientStream(bytes(100_000)).catch((thrown) => thrown);
    expect(error.code).toBe(Code.FailedPrecondition);
  });

  test("BUS-2 the only answer of a server stream that ends with it comes in one frame, with all metadata", async () => {
    await using echoing = await openStreams({
      async *serverStream(request, context) {
        context.responseHeader.set("x-head", "one");
        yield request;
        context.responseTrailer.set("x-tail", "two");
      },
    });
    const { connection } = await world.connect();
    let frames = 0;
    connection.subscribe("_INBOX.>", { callback: () => void frames++ });
    await connection.flush();
    const seen: string[] = [];
    const answers = echoing.client.serverStream(byte(7), {
      onHeader: (header) => seen.push(`${header.get("x-head")}`),
      onTrailer: (trailer) => seen.push(`${trailer.get("x-tail")}`),
    });
    for await (const { value } of answers) seen.push(`${value[0]}`);
    await connection.flush();
    expect(seen).toEqual(["one", "7", "two"]);
    expect(frames).toBe(1);
  });

  test("BUS-2 a caller that aborts aborts the handler's signal, and the handler's loop ends", async () => {
    let running: HandlerContext | undefined;
    let isOver = false;
    await using echoing = await openStreams({
      async *serverStream(_request, context) {
        running = context;
        try {
          for (;;) yield byte(1);
        } finally {
          isOver = true;
        }
      },
    });
    const controller = new AbortController();
    const answers = echoing.client.serverStream(byte(0), { signal: controller.signal });
    const error = await failureOf(answers, () => controller.abort());
    expect(error.code).toBe(Code.Canceled);
    await until(() => running?.signal.aborted && isOver);
  });

  test("BUS-2 a deadline ends a stream on both sides", async () => {
    let running: HandlerContext | undefined;
    await using echoing = await openStreams({
      async *serverStream(_request, context) {
        running = context;
        yield byte(1);
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
      },
    });
    const error = await failureOf(echoing.client.serverStream(byte(0), { timeoutMs: 100 }));
    expect(error.code).toBe(Code.DeadlineExceeded);
    expect(deliveryOf(error)).toBe("UNKNOWN");
    await until(() => running?.signal.aborted);
  });

  test("BUS-2 a source of requests that fails ends the call on both sides", async () => {
    let running: HandlerContext | undefined;
    await using echoing = await openStreams({
      async clientStream(requests, context) {
        running = context;
        return byte((await firstBytes(requests)).length);
      },
    });
    async function* broken() {
      yield byte(1);
      await until(() => running);
      throw new ConnectError("no more", Code.DataLoss);
    }
    const error = await echoing.client.clientStream(broken()).catch((thrown) => thrown);
    expect(error.code).toBe(Code.DataLoss);
    await until(() => running?.signal.aborted);
  });

  test("BUS-2 no responder is unavailable at once for a stream too", async () => {
    const client = createClient(EchoService, createNatsTransport(await world.connect(), { service: "nobody" }));
    for (const call of [() => client.serverStream(byte(1)), () => client.bidi(bytes(3))]) {
      const error = await failureOf(call());
      expect([error.code, deliveryOf(error)]).toEqual([Code.Unavailable, "NOT_SENT"]);
    }
  });

  test("BUS-2 interceptors of both sides see each message of a stream and may change it", async () => {
    const seen: string[] = [];
    const named =
      (name: string): Interceptor =>
      (next) =>
      async (request) => {
        seen.push(`${name}:${request.stream}`);
        const response = await next(request);
        if (!response.stream) return response;
        const { message } = response;
        async function* counted() {
          for await (const item of message) {
            seen.push(name);
            yield item;
          }
        }
        return { ...response, message: counted() };
      };
    const serverStream = () => bytes(2);
    await using echoing = await openStreams({ serverStream }, { server: [named("s")], client: [named("c")] });
    expect(await firstBytes(echoing.client.serverStream(byte(0)))).toEqual([0, 1]);
    expect(seen.toSorted().join(" ")).toBe("c c c:true s s s:true");
  });
});
