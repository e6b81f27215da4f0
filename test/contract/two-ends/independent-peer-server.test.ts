// Our client against a server written from docs/connect-over-nats/README.md alone, with another NATS library.

import { create, toBinary } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { Kind } from "../independent-peer/frames/frame.ts";
import { PeerError } from "../independent-peer/peer-error.ts";
import { type BothEnds, failureOf, largeValue, one, openBothEnds, two, values } from "./testing/both-ends.ts";
import { type EchoHandler, sequence, serving } from "./testing/peer-server.ts";

const stack = new AsyncDisposableStack();
let ends: BothEnds;

beforeAll(async () => {
  ends = stack.use(await openBothEnds());
});
afterAll(() => stack.disposeAsync());

describe("our client with a server by the document alone", () => {
  it("makes calls of all four shapes", async () => {
    await using pair = await serving(ends, {});
    const { client } = pair;
    expect(values([await client.unary(one)])).toEqual([[1]]);
    expect(values(await Array.fromAsync(client.serverStream(one)))).toEqual([[1], [1]]);
    expect(values([await client.clientStream(sequence(one, two))])).toEqual([[1, 2]]);
    expect(values(await Array.fromAsync(client.bidi(sequence(one, two))))).toEqual([[1], [2]]);
    expect(await Array.fromAsync(client.bidi(sequence()))).toEqual([]);
    expect(values([await client.clientStream(sequence())])).toEqual([[]]);
  });

  it("sends on the wire what the document's examples show", async () => {
    await using watch = await ends.watch();
    const { seen } = watch;
    await using pair = await serving(ends, {});
    const sentTo = (subject: string | undefined) => seen.filter((message) => message.subject === subject);
    const openingOf = (method: string) =>
      sentTo(`toolbus.rpc.${pair.service}.toolbus.echo.v1.EchoService.${method}`)[0];
    const { client } = pair;
    await client.unary(one, { headers: { traceparent: "00-1-2-01" } });
    await until(() => openingOf("Unary") !== undefined);
    expect(openingOf("Unary")?.payload).toBe("0a0101");
    const [expires, sent, ...others] = openingOf("Unary")?.headers.toSorted() ?? [];
    expect(others).toEqual(["traceparent: 00-1-2-01"]);
    expect(sent).toMatch(/^Rpc-Sent: [\w-]{1,32} \d+$/);
    const expiresInMs = Number(/^Rpc-Expires: (\d+)$/.exec(expires ?? "")?.[1]) - Date.now();
    expect(expiresInMs).toBeGreaterThan(1_000);
    expect(expiresInMs).toBeLessThanOrEqual(3_000);

    await Array.fromAsync(client.serverStream(one));
    await until(() => openingOf("ServerStream") !== undefined);
    expect(openingOf("ServerStream")?.headers).toContain("Rpc-Credit: 64 65536");

    await Array.fromAsync(client.bidi(sequence(one)));
    await until(() => sentTo(openingOf("Bidi")?.reply).length === 3);
    expect(openingOf("Bidi")?.payload).toBe("");
    const inbox = sentTo(openingOf("Bidi")?.reply)[0]?.reply;
    expect(sentTo(inbox).map(({ payload }) => payload)).toEqual(["0100000000000a0101", "020000000001"]);
  });

  it("sends and gets 3 MiB, which no message of this broker holds, in every shape", { timeout: 30_000 }, async () => {
    await using pair = await serving(ends, {});
    const { client } = pair;
    const large = { value: largeValue(3 * 1_048_576) };
    const compared = (messages: readonly { value: Uint8Array }[]) =>
      messages.map(({ value }) => Buffer.compare(value, large.value));
    expect(pair.server.link.maxPayload).toBe(1_048_576);
    expect(compared([await client.unary(large)])).toEqual([0]);
    expect(compared(await Array.fromAsync(client.serverStream(large)))).toEqual([0, 0]);
    expect(compared([await client.clientStream(sequence(large))])).toEqual([0]);
    expect(compared(await Array.fromAsync(client.bidi(sequence(large, large))))).toEqual([0, 0]);
  });

  it("reads slowly, and the server is not granted more", async () => {
    let produced = 0;
    await using pair = await serving(ends, {
      async *serverStream() {
        for (; produced < 300; produced++) yield one;
      },
    });
    let taken = 0;
    for await (const _ of pair.client.serverStream(one)) {
      taken++;
      if (taken <= 3) await until(() => produced >= 64);
      await pair.client.unary(one);
      expect(produced).toBeLessThanOrEqual(taken + 64);
    }
    expect(taken).toBe(300);
  });

  it("sends no more than the server takes, and all of it in the end", async () => {
    const gate = Promise.withResolvers<void>();
    await using pair = await serving(ends, {
      async *bidi(requests) {
        await gate.promise;
        yield* requests;
      },
    });
    let pulled = 0;
    const requests = async function* () {
      for (; pulled < 300; pulled++) yield two;
    };
    const answers = Array.fromAsync(pair.client.bidi(requests()));
    await until(() => pulled >= 64);
    for (let calls = 0; calls < 5; calls++) await pair.client.unary(one);
    expect(pulled).toBe(64);
    gate.resolve();
    expect(await answers).toHaveLength(300);
  });

  it("gives and gets metadata: text, several values, bytes, trailers", async () => {
    let got: Headers | undefined;
    await using pair = await serving(ends, {
      unary: (requests, context) => {
        got = context.metadata;
        context.header.set("x-place", "Zürich");
        context.header.append("x-many", "a");
        context.header.append("x-many", "b");
        context.trailer.set("x-signature-bin", "AAEC");
        return requests;
      },
    });
    const headers = new Headers({ "x-tenant": "café", "x-key-bin": "/+8" });
    headers.append("x-many", "1");
    headers.append("x-many", "2");
    let header: Headers | undefined;
    let trailer: Headers | undefined;
    const onHeader = (seen: Headers) => {
      header = seen;
    };
    const onTrailer = (seen: Headers) => {
      trailer = seen;
    };
    await pair.client.unary(one, { headers, onHeader, onTrailer });
    expect([got?.get("x-tenant"), got?.get("x-key-bin"), got?.get("x-many")]).toEqual(["café", "/+8", "1, 2"]);
    expect([header?.get("x-place"), header?.get("x-many")]).toEqual(["Zürich", "a, b"]);
    expect(trailer?.get("x-signature-bin")).toBe("AAEC");
  });

  it("gets an error with its details and metadata, after the messages before it", async () => {
    const value = toBinary(BytesValueSchema, create(BytesValueSchema, { value: Uint8Array.of(7, 8) }));
    await using pair = await serving(ends, {
      async *serverStream(requests) {
        yield* requests;
        const metadata = new Headers({ "x-why": "gone" });
        const details = [{ type: "google.protobuf.BytesValue", value }];
        throw new PeerError("not_found", "no such thing", { metadata, details });
      },
    });
    const got: number[] = [];
    const failure = await failureOf(
      ConnectError,
      (async () => {
        for await (const { value } of pair.client.serverStream(one)) got.push(...value);
      })(),
    );
    expect(got).toEqual([1]);
    expect(failure).toMatchObject({ code: Code.NotFound, rawMessage: "no such thing" });
    expect(failure.metadata.get("x-why")).toBe("gone");
    expect(failure.findDetails(BytesValueSchema).map((detail) => [...detail.value])).toEqual([[7, 8]]);
  });

  it("takes an end flag for an end frame, and the other way round", async () => {
    const body = toBinary(BytesValueSchema, create(BytesValueSchema, one));
    await using pair = await serving(ends, {
      // biome-ignore lint/correctness/useYield: it writes its frames itself
      async *serverStream(_requests, { line }) {
        line.send({ kind: Kind.data, body });
        line.send({ kind: Kind.data, body, end: true });
      },
      // biome-ignore lint/correctness/useYield: it writes its frames itself
      async *clientStream(_requests, { line }) {
        line.send({ kind: Kind.data, body });
        line.send({ kind: Kind.end });
      },
    });
    expect(values(await Array.fromAsync(pair.client.serverStream(one)))).toEqual([[1], [1]]);
    expect(values([await pair.client.clientStream(sequence(one))])).toEqual([[1]]);
  });

  it("sends a unary request again, twice at most, if an instance refused it before starting", async () => {
    let attempts = 0;
    const refusing = (limit: number): EchoHandler =>
      async function* (requests) {
        attempts++;
        if (attempts <= limit) throw new PeerError("unavailable", "not here", { delivery: "NOT_SENT" });
        yield* requests;
      };
    await using patient = await serving(ends, { unary: refusing(2) });
    expect(values([await patient.client.unary(one)])).toEqual([[1]]);
    expect(attempts).toBe(3);
    attempts = 0;
    await using never = await serving(ends, { unary: refusing(1_000) });
    expect(await failureOf(ConnectError, never.client.unary(one))).toMatchObject({ code: Code.Unavailable });
    expect(attempts).toBe(3);
  });
});
