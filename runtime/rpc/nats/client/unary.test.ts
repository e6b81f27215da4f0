import { create } from "@bufbuild/protobuf";
import { type BytesValue, BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { deliveryOf } from "../call/delivery.ts";
import { serveOnNats } from "../server/server.ts";
import { EchoService } from "../testing/echo-service.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";
import { createNatsTransport, type NatsTransportOptions } from "./transport.ts";

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(async () => world[Symbol.asyncDispose]());

type Unary = (request: BytesValue, context: HandlerContext) => Promise<{ value: Uint8Array }>;
let lastService = 0;

/** A service of its own with the given implementation, and a client of it. */
async function openUnary(
  unary: Unary,
  options: { server?: Interceptor[]; client?: Partial<NatsTransportOptions> } = {},
) {
  lastService += 1;
  const service = `unary-${lastService}`;
  const server = await serveOnNats(await world.connect(), {
    service,
    routes: (router) => router.service(EchoService, { unary }),
    ...(options.server && { interceptors: options.server }),
  });
  const transport = createNatsTransport(await world.connect(), { service, ...options.client });
  return {
    client: createClient(EchoService, transport),
    service,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

const echo: Unary = async (request) => ({ value: request.value });
const value = new Uint8Array([1, 2, 3]);

async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ConnectError);
  return error as ConnectError;
}

/** With an empty call that runs until its signal aborts; every other one is echoed. */
async function openRunning(signal: AbortSignal) {
  let running: HandlerContext | undefined;
  const echoing = await openUnary(async (request, context) => {
    if (request.value.length > 0) return request;
    running = context;
    await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
    return request;
  });
  const failure = failureOf(echoing.client.unary({}, { signal }));
  return { ...echoing, failure, running: await until(() => running) };
}

describe("a unary call over NATS", () => {
  test("BUS-2 the generated client reaches the generated handler and gets its answer", async () => {
    await using echoing = await openUnary(echo);
    const answer = await echoing.client.unary({ value });
    expect([...answer.value]).toEqual([1, 2, 3]);
    expect((await echoing.client.unary({})).value).toHaveLength(0);
  });

  test("BUS-2 metadata travels both ways, as headers and trailers, text and binary, traceparent among it", async () => {
    const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    await using echoing = await openUnary(async (request, context) => {
      for (const key of ["traceparent", "x-many", "x-data-bin"]) {
        context.responseHeader.set(key, context.requestHeader.get(key) ?? "");
        context.responseTrailer.set(key, `${context.requestHeader.get(key)}`);
      }
      return request;
    });
    let header = new Headers();
    let trailer = new Headers();
    const headers = new Headers({ traceparent: trace, "x-many": "one, é ÿ:=", "x-data-bin": "AAEC/w" });
    headers.append("x-many", "two");
    await echoing.client.unary({ value }, { headers, onHeader: (h) => (header = h), onTrailer: (t) => (trailer = t) });
    for (const metadata of [header, trailer]) {
      expect(metadata.get("traceparent")).toBe(trace);
      expect(metadata.get("x-many")).toBe("one, é ÿ:=, two");
      expect(metadata.get("x-data-bin")).toBe("AAEC/w");
    }
  });

  test("BUS-2 an error keeps its code, message, details and metadata, and says nothing about delivery", async () => {
    await using echoing = await openUnary(async () => {
      const detail = { desc: BytesValueSchema, value: { value } };
      const metadata = { "x-reason": "full", "toolbus-delivery": "NOT_SENT" };
      throw new ConnectError("no more room ü", Code.ResourceExhausted, metadata, [detail]);
    });
    const error = await failureOf(echoing.client.unary({ value }));
    expect(error.code).toBe(Code.ResourceExhausted);
    expect(error.rawMessage).toBe("no more room ü");
    expect(error.metadata.get("x-reason")).toBe("full");
    expect(error.findDetails(BytesValueSchema)).toEqual([create(BytesValueSchema, { value })]);
    expect(deliveryOf(error)).toBeUndefined();
  });

  test("BUS-2 what a handler throws that is no ConnectError is internal and shows nothing", async () => {
    await using echoing = await openUnary(async () => {
      throw new Error("the password is 123");
    });
    const error = await failureOf(echoing.client.unary({}));
    expect([error.code, error.rawMessage]).toEqual([Code.Internal, "internal error"]);
  });

  test("BUS-2 a method that the service leaves out is unimplemented", async () => {
    const service = "left-out";
    await using _server = await serveOnNats(await world.connect(), {
      service,
      routes: (r) => r.service(EchoService, {}),
    });
    const client = createClient(EchoService, createNatsTransport(await world.connect(), { service }));
    expect((await failureOf(client.unary({}))).code).toBe(Code.Unimplemented);
  });

  test("BUS-2 no responder is unavailable at once, and the call was not sent", async () => {
    const timings = { heartbeatMs: 1_000, silenceMs: 600_000 };
    const client = createClient(
      EchoService,
      createNatsTransport(await world.connect(), { service: "nobody", timings }),
    );
    const startedAt = tickedMs();
    const error = await failureOf(client.unary({}));
    expect(error.code).toBe(Code.Unavailable);
    expect(deliveryOf(error)).toBe("NOT_SENT");
    expect(tickedMs() - startedAt).toBeLessThan(timings.silenceMs / 100);
  });

  test("BUS-2 interceptors of both sides see the call and may change it, in Connect's order", async () => {
    const seen: string[] = [];
    const named =
      (name: string): Interceptor =>
      (next) =>
      async (request) => {
        seen.push(`${name}>${request.method.name}`);
        request.header.append("x-path", name);
        const response = await next(request);
        seen.push(`<${name}`);
        response.header.append("x-back", name);
        return response;
      };
    await using echoing = await openUnary(
      async (request, context) => {
        seen.push(context.requestHeader.get("x-path") ?? "");
        return request;
      },
      { server: [named("s1"), named("s2")], client: { interceptors: [named("c1"), named("c2")] } },
    );
    let back = "";
    await echoing.client.unary({ value }, { onHeader: (header) => (back = header.get("x-back") ?? "") });
    const path = "c1, c2, s1, s2";
    expect(seen.join(" ")).toBe(`c1>Unary c2>Unary s1>Unary s2>Unary ${path} <s2 <s1 <c2 <c1`);
    expect(back).toBe("s2, s1, c2, c1");
  });

  test("BUS-2 interceptors given with a registration stand in place of the server's, as in Connect", async () => {
    const seen: string[] = [];
    const named =
      (name: string): Interceptor =>
      (next) =>
      (request) => {
        seen.push(name);
        return next(request);
      };
    const service = "own-interceptors";
    await using _server = await serveOnNats(await world.connect(), {
      service,
      interceptors: [named("server")],
      routes: (router) => {
        router.rpc(EchoService.method.unary, echo, { interceptors: [named("registration")] });
      },
    });
    const client = createClient(EchoService, createNatsTransport(await world.connect(), { service }));
    await client.unary({ value });
    expect(seen).toEqual(["registration"]);
  });

  test("BUS-2 a timeout becomes the handler's deadline, and ends the call on both sides", async () => {
    let leftMs: number | undefined;
    let reason: unknown;
    await using echoing = await openUnary(async (request, context) => {
      leftMs = context.timeoutMs();
      const { promise, reject } = Promise.withResolvers<never>();
      context.signal.addEventListener("abort", () => {
        reason = context.signal.reason;
        reject(reason);
      });
      await promise;
      return request;
    });
    const error = await failureOf(echoing.client.unary({}, { timeoutMs: 1_000 }));
    expect(error.code).toBe(Code.DeadlineExceeded);
    expect(["UNKNOWN", undefined]).toContain(deliveryOf(error)); // undefined: the server said so itself
    expect(leftMs).toBeGreaterThan(0);
    expect(leftMs).toBeLessThanOrEqual(1_000);
    await until(() => reason instanceof ConnectError);
  });

  test("BUS-2 a caller that aborts aborts the handler's signal at once, and other calls go on", async () => {
    const controller = new AbortController();
    await using echoing = await openRunning(controller.signal);
    controller.abort();
    const error = await echoing.failure;
    expect(error.code).toBe(Code.Canceled);
    expect(deliveryOf(error)).toBe("UNKNOWN");
    const { signal } = echoing.running;
    await until(() => signal.aborted);
    expect(String(signal.reason)).toContain("canceled");
    expect((await echoing.client.unary({ value })).value).toHaveLength(3);
  });

  test("BUS-2 a call that is aborted before it is sent was not sent", async () => {
    await using echoing = await openUnary(echo);
    const error = await failureOf(echoing.client.unary({}, { signal: AbortSignal.abort() }));
    expect(error.code).toBe(Code.Canceled);
    expect(deliveryOf(error)).toBe("NOT_SENT");
  });

  test("BUS-2 calls that one reason aborts are told each of its own delivery", async () => {
    const controller = new AbortController();
    await using echoing = await openRunning(controller.signal);
    const reason = new ConnectError("it stops", Code.Unavailable);
    const unsent = await failureOf(echoing.client.unary({}, { signal: AbortSignal.abort(reason) }));
    controller.abort(reason);
    const sent = await echoing.failure;
    expect([unsent, sent].map(deliveryOf)).toEqual(["NOT_SENT", "UNKNOWN"]);
    expect([sent.code, sent.rawMessage]).toEqual([Code.Unavailable, "it stops"]);
  });
});
