// A client written from docs/connect-over-nats.md alone, with another NATS library, against our server.

import { create, toBinary } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EchoService } from "#runtime/rpc/nats/echo-service.ts";
import { serveOnNats } from "#runtime/rpc/nats/server.ts";
import { until } from "#runtime/time/until.ts";
import { type BothEnds, heartbeatsOf, largeValue, openBothEnds } from "./independent-peer/both-ends.ts";
import { PeerClient } from "./independent-peer/client.ts";
import type { CallOptions } from "./independent-peer/client-call.ts";
import { PeerError } from "./independent-peer/peer-error.ts";

type Echo = Partial<ServiceImpl<typeof EchoService>>;

const { unary, serverStream, clientStream, bidi } = EchoService.method;
const stack = new AsyncDisposableStack();
let ends: BothEnds;
let services = 0;

beforeAll(async () => {
  ends = stack.use(await openBothEnds());
});
afterAll(() => stack.disposeAsync());

/** Our server with this implementation, and the peer as its client. */
async function serving(echo: Echo) {
  const service = `echo-${services++}`;
  const routes = (router: ConnectRouter) => router.service(EchoService, echo);
  const server = await serveOnNats(ends.bus, { service, instance: "one", routes });
  const connection = await ends.connectPeer();
  const client = new PeerClient(connection, service);
  const opened = new AsyncDisposableStack();
  opened.use(server);
  return { service, connection, client, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}

const one = { value: Uint8Array.of(1) };
const two = { value: Uint8Array.of(2) };
const values = (messages: readonly { value: Uint8Array }[]) => messages.map(({ value }) => [...value]);
const streamed: CallOptions = { window: { messages: 64, bytes: 65_536 } };
const failureOf = async (call: AsyncIterable<unknown> | Promise<unknown>): Promise<PeerError> => {
  const [outcome] = await Promise.allSettled([call instanceof Promise ? call : Array.fromAsync(call)]);
  if (outcome?.status === "rejected" && outcome.reason instanceof PeerError) return outcome.reason;
  throw new Error("the call did not fail", { cause: outcome });
};

const plain: Echo = {
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
};

describe("a client by the document alone", () => {
  it("BUS-2 makes calls of all four shapes", async () => {
    await using room = await serving(plain);
    expect(values([(await room.client.ask(unary, [one])).message])).toEqual([[1]]);
    expect(values(await Array.fromAsync(room.client.call(serverStream, [one], streamed)))).toEqual([[1], [1]]);
    expect(values([(await room.client.ask(clientStream, [one, two])).message])).toEqual([[1, 2]]);
    expect(values(await Array.fromAsync(room.client.call(bidi, [one, two], streamed)))).toEqual([[1], [2]]);
    expect(await Array.fromAsync(room.client.call(bidi, []))).toEqual([]);
    expect(values([(await room.client.ask(clientStream, [])).message])).toEqual([[]]);
  });

  it("BUS-2 sees on the wire what the document's examples show", async () => {
    await using room = await serving({
      ...plain,
      async *bidi(requests, context) {
        context.responseTrailer.set("x-cost", "3");
        yield* requests;
      },
    });
    const seen = await ends.watch();
    const answersTo = (inbox: string) => seen.filter((message) => message.subject === inbox);
    await room.client.ask(unary, [one]);
    await until(() => seen.length >= 2);
    expect(seen[0]?.subject).toBe(`toolbus.rpc.${room.service}.toolbus.echo.v1.EchoService.Unary`);
    expect(answersTo(seen[0]!.reply)).toMatchObject([{ payload: "0102000000000a0101", headers: [], reply: "" }]);

    const stream = room.client.call(serverStream, [one], streamed);
    await Array.fromAsync(stream);
    await until(() => answersTo(stream.raw.line.inbox).length === 4);
    const answers = answersTo(stream.raw.line.inbox);
    const frames = ["060000000000", "0100000000010a0101", "0100000000020a0101", "020000000003"];
    expect(answers.map(({ payload }) => payload)).toEqual(frames);
    expect(answers.map(({ reply }) => reply !== "")).toEqual([true, false, false, false]);

    const both = room.client.call(bidi, [one], streamed);
    await Array.fromAsync(both);
    await until(() => answersTo(both.raw.line.inbox).length === 3);
    const [granted, ...others] = answersTo(both.raw.line.inbox);
    expect(granted).toMatchObject({ payload: "0500000000000000004000010000", reply: both.raw.line.peerInbox });
    expect(others.map(({ payload, headers }) => [payload, ...headers])).toEqual([
      ["0100000000010a0101"],
      ["020000000002", "Trailer-x-cost: 3"],
    ]);
  });

  it("BUS-3 sends and gets 3 MiB, which no message of this broker holds, in every shape", {
    timeout: 30_000,
  }, async () => {
    await using room = await serving(plain);
    const large = { value: largeValue(3 * 1_048_576) };
    const isLarge = (messages: readonly { value: Uint8Array }[]) =>
      messages.map(({ value }) => Buffer.compare(value, large.value));
    expect(room.client.link.maxPayload).toBe(1_048_576);
    expect(isLarge([(await room.client.ask(unary, [large])).message])).toEqual([0]);
    expect(isLarge(await Array.fromAsync(room.client.call(serverStream, [large], streamed)))).toEqual([0, 0]);
    expect(isLarge([(await room.client.ask(clientStream, [large])).message])).toEqual([0]);
    expect(isLarge(await Array.fromAsync(room.client.call(bidi, [large, large], streamed)))).toEqual([0, 0]);
  });

  it("BUS-4 reads slowly, and our server sends no more than was granted", async () => {
    let produced = 0;
    await using room = await serving({
      ...plain,
      async *serverStream(request) {
        for (; produced < 100; produced++) yield request;
      },
    });
    const window = { messages: 4, bytes: 65_536 };
    let taken = 0;
    for await (const _ of room.client.call(serverStream, [one], { window })) {
      taken++;
      for (let calls = 0; calls < 3; calls++) await room.client.ask(unary, [one]);
      expect(produced).toBeLessThanOrEqual(taken + window.messages);
    }
    expect(taken).toBe(100);
  });

  it("BUS-4 sends no more than our handler takes, and all of it in the end", async () => {
    const gate = Promise.withResolvers<void>();
    await using room = await serving({
      ...plain,
      async *bidi(requests) {
        await gate.promise;
        yield* requests;
      },
    });
    let pulled = 0;
    const requests = async function* () {
      for (; pulled < 300; pulled++) yield two;
    };
    const answers = Array.fromAsync(room.client.call(bidi, requests(), streamed));
    await until(() => pulled === 64);
    for (let calls = 0; calls < 5; calls++) await room.client.ask(unary, [one]);
    expect(pulled).toBe(64);
    gate.resolve();
    expect(await answers).toHaveLength(300);
  });

  it("BUS-5 gives and gets metadata: text, several values, bytes, trailers", async () => {
    let got: Headers | undefined;
    await using room = await serving({
      ...plain,
      unary(request, context) {
        got = context.requestHeader;
        context.responseHeader.set("x-place", "Zürich");
        context.responseHeader.append("x-many", "a");
        context.responseHeader.append("x-many", "b");
        context.responseTrailer.set("x-signature-bin", "AAEC");
        return request;
      },
    });
    const metadata = new Headers({ "x-tenant": "café", "x-key-bin": "/+8" });
    metadata.append("x-many", "1");
    metadata.append("x-many", "2");
    const { header, trailer } = await room.client.ask(unary, [one], { metadata });
    expect([got?.get("x-tenant"), got?.get("x-key-bin"), got?.get("x-many")]).toEqual(["café", "/+8", "1, 2"]);
    expect([...header]).toEqual([
      ["x-many", "a, b"],
      ["x-place", "Zürich"],
    ]);
    expect([...trailer]).toEqual([["x-signature-bin", "AAEC"]]);
  });

  it("BUS-5 gets an error with its details and metadata, after the messages before it", async () => {
    await using room = await serving({
      ...plain,
      async *serverStream(request) {
        yield request;
        throw new ConnectError("no such thing", Code.NotFound, { "x-why": "gone" }, [
          { desc: BytesValueSchema, value: { value: Uint8Array.of(7) } },
        ]);
      },
    });
    const got: number[] = [];
    const call = room.client.call(serverStream, [one], streamed);
    const failure = await failureOf(
      (async () => {
        for await (const { value } of call) got.push(...value);
      })(),
    );
    expect(got).toEqual([1]);
    expect(failure).toMatchObject({ code: "not_found", text: "no such thing", delivery: undefined });
    expect([...failure.metadata]).toEqual([["x-why", "gone"]]);
    const value = toBinary(BytesValueSchema, create(BytesValueSchema, { value: Uint8Array.of(7) }));
    expect(failure.details).toEqual([{ type: "google.protobuf.BytesValue", value }]);
  });
});

describe("a client by the document alone that gives up", () => {
  /** An implementation whose calls hang, and the contexts of those that began. */
  function hanging() {
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

  it("BUS-7 cancels a call without knowing who serves it, and one whose server it knows", async () => {
    const { contexts, echo } = hanging();
    await using room = await serving(echo);
    for (const method of [unary, serverStream]) {
      const controller = new AbortController();
      const call = room.client.call(method, [one], { signal: controller.signal });
      const failure = failureOf(call);
      await until(() => contexts.length > 0 && (method === unary || call.raw.line.peerInbox !== undefined));
      controller.abort();
      await until(() => contexts[0]?.signal.aborted === true);
      expect(await failure).toMatchObject({ code: "canceled", delivery: "UNKNOWN" });
      contexts.length = 0;
    }
  });

  it("BUS-7 cancels before its opening comes, and the call is not started", async () => {
    const { contexts, echo } = hanging();
    await using room = await serving(echo);
    const { connection, service } = room;
    const { headers, createInbox } = await import("nats");
    const inbox = createInbox();
    const answers = connection.subscribe(inbox);
    const block = headers();
    block.set("Rpc-Expires", `${Date.now() + 3_000}`);
    connection.publish(`toolbus.rpc.${service}.cancel`, inbox);
    connection.publish(`toolbus.rpc.${service}.toolbus.echo.v1.EchoService.Unary`, "", {
      reply: inbox,
      headers: block,
    });
    await room.client.ask(clientStream, [one]);
    expect([contexts.length, answers.getReceived()]).toEqual([0, 0]);
  });

  it("BUS-7 sets a deadline, which the handler has too", async () => {
    const { contexts, echo } = hanging();
    await using room = await serving(echo);
    const failure = await failureOf(room.client.call(unary, [one], { timeoutMs: 300 }));
    expect(failure).toMatchObject({ code: "deadline_exceeded" });
    expect(contexts[0]?.timeoutMs()).toBeLessThanOrEqual(300);
    await until(() => contexts[0]?.signal.aborted === true);
  });

  it("BUS-8 knows at once that nobody serves, and that nothing was sent", async () => {
    const client = new PeerClient(await ends.connectPeer(), "nobody");
    const begun = performance.now();
    expect(await failureOf(client.ask(unary, [one]))).toMatchObject({ code: "unavailable", delivery: "NOT_SENT" });
    expect(performance.now() - begun).toBeLessThan(1_000);
  });

  it("BUS-8 is refused when its request comes too late, or does not say until when it may come", async () => {
    const { contexts, echo } = hanging();
    await using room = await serving(echo);
    const refusalOf = (expiresAtMs: number) => failureOf(room.client.ask(unary, [one], { expiresAtMs }));
    expect(await refusalOf(Date.now() - 2_000)).toMatchObject({ code: "deadline_exceeded", delivery: "NOT_SENT" });
    expect(await refusalOf(Number.NaN)).toMatchObject({ code: "invalid_argument", delivery: "NOT_SENT" });
    expect(contexts).toEqual([]);
  });

  it("BUS-8 stays with a call for longer than a silence lasts, by heartbeats of both sides", async () => {
    const seen = await ends.watch();
    const gate = Promise.withResolvers<void>();
    await using room = await serving({
      ...plain,
      async unary(request) {
        await gate.promise;
        return request;
      },
    });
    const call = room.client.call(unary, [one]);
    const answer = Array.fromAsync(call);
    const { line } = call.raw;
    await until(() => heartbeatsOf(seen, line.inbox) >= 4 && heartbeatsOf(seen, line.peerInbox) >= 4, {
      timeoutMs: 15_000,
    });
    gate.resolve();
    expect(values(await answer)).toEqual([[1]]);
  });

  it.each([
    ["a unary call", unary],
    ["a stream", serverStream],
  ])("BUS-8 falls silent in %s, and our handler is aborted", async (_name, method) => {
    const { contexts, echo } = hanging();
    await using room = await serving(echo);
    const call = room.client.call(method, [one]);
    const failure = failureOf(call);
    await until(() => contexts.length === 1);
    const begun = performance.now();
    room.client.link.fallSilent();
    await until(() => contexts[0]?.signal.aborted === true, { timeoutMs: 15_000 });
    const silenceMs = performance.now() - begun;
    expect(silenceMs).toBeGreaterThan(2_000);
    expect(silenceMs).toBeLessThan(5_000);
    expect(await failure).toMatchObject({ code: "unavailable", delivery: "UNKNOWN" });
  });

  it("BUS-4 sends without credit, or loses a frame, and the call is ended", async () => {
    await using room = await serving({
      ...plain,
      // biome-ignore lint/correctness/useYield: it never gets so far
      async *bidi(_requests, context) {
        await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve()));
      },
    });
    const ofMischief = async (mischief: (call: ReturnType<typeof begin>) => void) => {
      const call = begin();
      const failure = failureOf(call);
      await until(() => call.raw.line.peerInbox !== undefined);
      mischief(call);
      return failure;
    };
    const begin = () => {
      const gate = Promise.withResolvers<void>();
      const requests = async function* () {
        await gate.promise;
        for (let sent = 0; sent < 65; sent++) yield one;
      };
      return { ...room.client.call(bidi, requests(), streamed), send: gate.resolve };
    };
    const greedy = await ofMischief(({ raw, send }) => {
      raw.outbox.add({ messages: 1_000, bytes: 1_000_000 });
      send();
    });
    expect(greedy).toMatchObject({ code: "internal" });
    const lossy = await ofMischief(({ raw, send }) => {
      raw.line.nextSequence++;
      send();
    });
    expect(lossy).toMatchObject({ code: "unavailable" });
  });

  it("finds our server among the micro services, with an endpoint for each method", async () => {
    await using room = await serving(plain);
    const infos = await Array.fromAsync(await room.connection.services.client().info(room.service));
    expect(infos).toHaveLength(1);
    expect(infos[0]?.endpoints).toContainEqual(
      expect.objectContaining({
        name: "toolbus_echo_v1_EchoService_Unary",
        subject: `toolbus.rpc.${room.service}.toolbus.echo.v1.EchoService.Unary`,
        queue_group: room.service,
      }),
    );
  });
});
