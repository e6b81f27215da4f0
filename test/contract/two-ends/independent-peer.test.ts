// A client written from docs/connect-over-nats/README.md alone, with another NATS library, against our server.

import { create, toBinary } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { until } from "#runtime/time/until.ts";
import { PeerError } from "../independent-peer/peer-error.ts";
import { type BothEnds, failureOf, largeValue, one, openBothEnds, two, values } from "./testing/both-ends.ts";
import { plain, serving, streamed } from "./testing/our-server.ts";

const { unary, serverStream, clientStream, bidi } = EchoService.method;
const stack = new AsyncDisposableStack();
let ends: BothEnds;

beforeAll(async () => {
  ends = stack.use(await openBothEnds());
});
afterAll(() => stack.disposeAsync());

describe("a client by the document alone", () => {
  it("makes calls of all four shapes", async () => {
    await using pair = await serving(ends, plain);
    expect(values([(await pair.client.ask(unary, [one])).message])).toEqual([[1]]);
    expect(values(await Array.fromAsync(pair.client.call(serverStream, [one], streamed)))).toEqual([[1], [1]]);
    expect(await Array.fromAsync(pair.client.call(serverStream, [one]))).toHaveLength(2);
    expect(values([(await pair.client.ask(clientStream, [one, two])).message])).toEqual([[1, 2]]);
    expect(values(await Array.fromAsync(pair.client.call(bidi, [one, two], streamed)))).toEqual([[1], [2]]);
    expect(await Array.fromAsync(pair.client.call(bidi, []))).toEqual([]);
    expect(values([(await pair.client.ask(clientStream, [])).message])).toEqual([[]]);
  });

  it("sees on the wire what the document's examples show", async () => {
    await using pair = await serving(ends, {
      ...plain,
      async *bidi(requests, context) {
        context.responseTrailer.set("x-cost", "3");
        yield* requests;
      },
    });
    await using watch = await ends.watch();
    const { seen } = watch;
    const answersTo = (inbox: string) => seen.filter((message) => message.subject === inbox);
    await pair.client.ask(unary, [one]);
    await until(() => seen.length >= 2);
    expect(seen[0]?.subject).toBe(`toolbus.rpc.${pair.service}.toolbus.echo.v1.EchoService.Unary`);
    expect(answersTo(seen[0]!.reply)).toMatchObject([{ payload: "0102000000000a0101", headers: [], reply: "" }]);

    const stream = pair.client.call(serverStream, [one], streamed);
    await Array.fromAsync(stream);
    await until(() => answersTo(stream.raw.line.inbox).length === 3);
    const answers = answersTo(stream.raw.line.inbox);
    const frames = ["0100000000000a0101", "0100000000010a0101", "020000000002"];
    expect(answers.map(({ payload }) => payload)).toEqual(frames);
    expect(answers.map(({ reply }) => reply !== "")).toEqual([true, false, false]);

    const both = pair.client.call(bidi, [one], streamed);
    await Array.fromAsync(both);
    await until(() => answersTo(both.raw.line.inbox).length === 3);
    const [granted, ...others] = answersTo(both.raw.line.inbox);
    expect(granted).toMatchObject({ payload: "0500000000000000004000010000", reply: both.raw.line.peerInbox });
    expect(others.map(({ payload, headers }) => [payload, ...headers])).toEqual([
      ["0100000000010a0101"],
      ["020000000002", "Trailer-x-cost: 3"],
    ]);
  });

  it("sends and gets 3 MiB, which no message of this broker holds, in every shape", {
    timeout: 30_000,
  }, async () => {
    await using pair = await serving(ends, plain);
    const large = { value: largeValue(3 * 1_048_576) };
    const isLarge = (messages: readonly { value: Uint8Array }[]) =>
      messages.map(({ value }) => Buffer.compare(value, large.value));
    expect(pair.client.link.maxPayload).toBe(1_048_576);
    expect(isLarge([(await pair.client.ask(unary, [large])).message])).toEqual([0]);
    expect(isLarge(await Array.fromAsync(pair.client.call(serverStream, [large], streamed)))).toEqual([0, 0]);
    expect(isLarge([(await pair.client.ask(clientStream, [large])).message])).toEqual([0]);
    expect(isLarge(await Array.fromAsync(pair.client.call(bidi, [large, large], streamed)))).toEqual([0, 0]);
  });

  it("reads slowly, and our server sends no more than was granted", async () => {
    let produced = 0;
    await using pair = await serving(ends, {
      ...plain,
      async *serverStream(request) {
        for (; produced < 100; produced++) yield request;
      },
    });
    const window = { messages: 4, bytes: 65_536 };
    let taken = 0;
    for await (const _ of pair.client.call(serverStream, [one], { window })) {
      taken++;
      for (let calls = 0; calls < 3; calls++) await pair.client.ask(unary, [one]);
      expect(produced).toBeLessThanOrEqual(taken + window.messages);
    }
    expect(taken).toBe(100);
  });

  it("sends no more than our handler takes, and all of it in the end", async () => {
    const gate = Promise.withResolvers<void>();
    await using pair = await serving(ends, {
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
    const answers = Array.fromAsync(pair.client.call(bidi, requests(), streamed));
    await until(() => pulled === 64);
    for (let calls = 0; calls < 5; calls++) await pair.client.ask(unary, [one]);
    expect(pulled).toBe(64);
    gate.resolve();
    expect(await answers).toHaveLength(300);
  });

  it("gives and gets metadata: text, several values, bytes, trailers", async () => {
    let got: Headers | undefined;
    await using pair = await serving(ends, {
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
    const { header, trailer } = await pair.client.ask(unary, [one], { metadata });
    expect([got?.get("x-tenant"), got?.get("x-key-bin"), got?.get("x-many")]).toEqual(["café", "/+8", "1, 2"]);
    expect([...header]).toEqual([
      ["x-many", "a, b"],
      ["x-place", "Zürich"],
    ]);
    expect([...trailer]).toEqual([["x-signature-bin", "AAEC"]]);
  });

  it("gets an error with its details and metadata, after the messages before it", async () => {
    await using pair = await serving(ends, {
      ...plain,
      async *serverStream(request) {
        yield request;
        throw new ConnectError("no such thing", Code.NotFound, { "x-why": "gone" }, [
          { desc: BytesValueSchema, value: { value: Uint8Array.of(7, 8) } },
        ]);
      },
    });
    const got: number[] = [];
    const call = pair.client.call(serverStream, [one], streamed);
    const failure = await failureOf(
      PeerError,
      (async () => {
        for await (const { value } of call) got.push(...value);
      })(),
    );
    expect(got).toEqual([1]);
    expect(failure).toMatchObject({ code: "not_found", text: "no such thing", delivery: undefined });
    expect([...failure.metadata]).toEqual([["x-why", "gone"]]);
    const value = toBinary(BytesValueSchema, create(BytesValueSchema, { value: Uint8Array.of(7, 8) }));
    expect(failure.details).toEqual([{ type: "google.protobuf.BytesValue", value }]);
  });
});
