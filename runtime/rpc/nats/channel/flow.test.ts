import type { BytesValue } from "@bufbuild/protobuf/wkt";
import { type Client, Code, type ConnectError, createClient, type ServiceImpl } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { MAX_MESSAGE_BYTES } from "../../handling/messages/assembly.ts";
import { deliveryOf } from "../call/delivery.ts";
import { createNatsTransport } from "../client/transport.ts";
import { serveOnNats } from "../server/server.ts";
import { EchoService } from "../testing/echo-service.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";
import { CONNECTION_BUDGET_BYTES, FIRST_CREDIT, LARGEST_WINDOW_BYTES } from "./credit.ts";
import { CallMux } from "./mux.ts";

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(async () => world[Symbol.asyncDispose]());

const KIB = 1024;
const MIB = 1024 * KIB;
let lastService = 0;

async function openEcho(implementation: Partial<ServiceImpl<typeof EchoService>>) {
  lastService += 1;
  const service = `flow-${lastService}`;
  const server = await serveOnNats(await world.connect(), {
    service,
    routes: (router) => router.service(EchoService, { unary: async (request) => request, ...implementation }),
  });
  const { connection } = await world.connect();
  const client = createClient(EchoService, createNatsTransport({ connection }, { service }));
  return { client, connection, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

function bytesOf(size: number): Uint8Array<ArrayBuffer> {
  const value = new Uint8Array(size);
  for (let n = 0; n < size; n += 997) value[n] = n % 251;
  return value;
}

const isSame = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0;

describe("payloads over NATS", () => {
  const sizes = [0, 1, 255 * KIB, 256 * KIB, 256 * KIB + 1, MIB - 1, MIB, MIB + 1, 5 * MIB + 17];

  test.each(sizes)("BUS-2 a unary call carries %i bytes there and back over a max_payload of 1 MiB", async (size) => {
    await using echo = await openEcho({ unary: async (request) => ({ value: request.value }) });
    const value = bytesOf(size);
    expect(isSame((await echo.client.unary({ value })).value, value)).toBe(true);
  });

  test("BUS-2 a unary call and a stream carry almost 64 MiB in parts", async () => {
    await using echo = await openEcho({
      unary: async (request) => ({ value: request.value }),
      async *bidi(requests) {
        yield* requests;
      },
    });
    const value = bytesOf(MAX_MESSAGE_BYTES - 16);
    expect(isSame((await echo.client.unary({ value })).value, value)).toBe(true);
    async function* twice() {
      yield { value };
      yield { value: bytesOf(3) };
    }
    const sizes: number[] = [];
    for await (const answer of echo.client.bidi(twice())) sizes.push(answer.value.length);
    expect(sizes).toEqual([value.length, 3]);
  });

  test("BUS-2 a server stream takes a big request and gives big answers, in parts", async () => {
    await using echo = await openEcho({
      async *serverStream(request) {
        yield { value: request.value };
        yield { value: request.value };
      },
    });
    const value = bytesOf(3 * MIB);
    let count = 0;
    for await (const answer of echo.client.serverStream({ value })) count += isSame(answer.value, value) ? 1 : 0;
    expect(count).toBe(2);
  });

  test("BUS-2 a message over 64 MiB is refused with its size before anything is sent", async () => {
    let calls = 0;
    await using echo = await openEcho({
      unary: async () => {
        calls += 1;
        return { value: new Uint8Array(MAX_MESSAGE_BYTES + 1) };
      },
    });
    const value = new Uint8Array(MAX_MESSAGE_BYTES + 1);
    const error: ConnectError = await echo.client.unary({ value }).then(Object, (thrown) => thrown);
    expect(error.code).toBe(Code.ResourceExhausted);
    expect(error.rawMessage).toContain(String(MAX_MESSAGE_BYTES));
    expect(error.rawMessage).toMatch(/6710887\d bytes is over/);
    expect([deliveryOf(error), calls]).toEqual(["NOT_SENT", 0]);
    const answer: ConnectError = await echo.client.unary({}).then(Object, (thrown) => thrown);
    expect([answer.code, calls]).toEqual([Code.ResourceExhausted, 1]);
  });

  test("BUS-2 a call in parts can be aborted in the middle", async () => {
    await using echo = await openEcho({ unary: async (request) => ({ value: request.value }) });
    const controller = new AbortController();
    const call = echo.client.unary({ value: bytesOf(60 * MIB) }, { signal: controller.signal });
    await until(() => echo.connection.stats().outBytes > 2 * MIB, { intervalMs: 1 });
    controller.abort();
    const error: ConnectError = await call.then(Object, (thrown) => thrown);
    expect([error.code, deliveryOf(error)]).toEqual([Code.Canceled, "NOT_SENT"]);
    expect((await echo.client.unary({ value: bytesOf(10) })).value).toHaveLength(10);
  });
});

describe("back-pressure over NATS", () => {
  const size = 64 * KIB;
  const mostAhead = LARGEST_WINDOW_BYTES / size + 2;

  test("BUS-2 credits hold back a server whose reader is slow, and nothing is lost", async () => {
    let produced = 0;
    await using echo = await openEcho({
      async *serverStream() {
        for (; produced < 400; produced += 1) yield { value: bytesOf(size) };
      },
    });
    let read = 0;
    for await (const answer of echo.client.serverStream({})) {
      read += answer.value.length === size ? 1 : 0;
      if (read % 50 === 0) await unchanged(echo, () => produced);
      expect(produced - read).toBeLessThanOrEqual(mostAhead);
    }
    expect([produced, read]).toEqual([400, 400]);
  });

  test("BUS-2 credits in messages hold back a server of small messages", async () => {
    let produced = 0;
    await using echo = await openEcho({
      async *serverStream() {
        for (; produced < 5_000; produced += 1) yield { value: bytesOf(1) };
      },
    });
    let read = 0;
    for await (const _answer of echo.client.serverStream({})) {
      read += 1;
      if (read === 10 || read === 1_000) await unchanged(echo, () => produced);
      expect(produced - read).toBeLessThanOrEqual(FIRST_CREDIT.messages + 1);
    }
    expect(read).toBe(5_000);
  });

  test("BUS-2 credits hold back a caller whose server is slow", async () => {
    let produced = 0;
    let read = 0;
    let ahead = 0;
    await using echo = await openEcho({
      async clientStream(requests: AsyncIterable<BytesValue>) {
        for await (const _request of requests) {
          read += 1;
          if (read % 50 === 0) await unchanged(echo, () => produced);
          ahead = Math.max(ahead, produced - read);
        }
        return { value: bytesOf(1) };
      },
    });
    async function* requests() {
      for (; produced < 200; produced += 1) yield { value: bytesOf(size) };
    }
    await echo.client.clientStream(requests());
    expect(read).toBe(200);
    expect(ahead).toBeLessThanOrEqual(mostAhead);
  });

  test("BUS-2 many slow readers share one byte budget of their connection, all get their messages", async () => {
    await using echo = await openEcho({
      async *serverStream() {
        for (let n = 0; n < 40; n += 1) yield { value: bytesOf(size) };
      },
    });
    const { budget } = CallMux.of(echo.connection);
    const streams = Array.from({ length: 60 }, () => echo.client.serverStream({})[Symbol.asyncIterator]());
    const counts = await Promise.all(
      streams.map(async (stream) => {
        for (let count = 0; ; count += 1) {
          if ((await stream.next()).done) return count;
          expect(budget.used).toBeLessThanOrEqual(CONNECTION_BUDGET_BYTES + streams.length * 32 * KIB);
        }
      }),
    );
    expect(counts).toEqual(streams.map(() => 40));
    expect(budget.used).toBe(0);
    expect(echo.connection.isClosed()).toBe(false);
  });
});

/**
 * Waits until a count stands still over round trips between the same connections: what is on the way to its mover comes before
 * them, so whoever moves it is held back.
 */
async function unchanged(echo: { client: Client<typeof EchoService> }, count: () => number): Promise<void> {
  await until(async () => {
    const before = count();
    for (let trip = 0; trip < 5; trip += 1) await echo.client.unary({ value: bytesOf(1) });
    return count() === before;
  });
}
