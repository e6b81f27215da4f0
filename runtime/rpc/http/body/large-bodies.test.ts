// Large bodies of many connections: only so many are read at once.

import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { AssemblyRoom, MAX_MESSAGE_BYTES } from "../../handling/messages/assembly.ts";
import { sentBy } from "../messages.ts";
import { openServer } from "../testing/echo-server.ts";

const mib = 2 ** 20;

/** For two bodies of 3 MiB of one sender, and what is left to others. */
const roomForTwo = () => new AssemblyRoom(2 * MAX_MESSAGE_BYTES + 5 * mib);

interface Options {
  room: AssemblyRoom;
  roomPatienceMs?: number;
  graceMs?: number;
}

async function openHolding(body: Options) {
  const released = Promise.withResolvers<void>();
  const started: number[] = [];
  const server = await openServer(
    {
      async unary({ value }) {
        started.push(value.length);
        if (value.length > mib) await released.promise;
        return { value: new Uint8Array(1) };
      },
    },
    {
      body: { ...body, connectionBytes: 64 * mib },
      admit: (request) => void sentBy(request, String(request.headers.authorization)),
    },
  );
  /** A connection of its own for each client. */
  const clientOf = (name: string, kind: typeof createGrpcTransport | typeof createConnectTransport, version = "2") =>
    createClient(
      EchoService,
      kind({
        baseUrl: server.url,
        httpVersion: version as "2",
        interceptors: [
          (next) => (request) => {
            request.header.set("authorization", `Bearer ${name}`);
            return next(request);
          },
        ],
      }),
    );
  const large = () => started.filter((length) => length > mib).length;
  return { started, released, clientOf, large };
}

const doors = [
  ["Connect over HTTP/1.1", createConnectTransport, "1.1"],
  ["Connect over HTTP/2", createConnectTransport, "2"],
  ["gRPC", createGrpcTransport, "2"],
] as const;

test.each(doors)(
  "SEC-5 %s: of large bodies two are read at once, the others wait, small ones go on, all are answered",
  async (_, kind, version) => {
    const room = roomForTwo();
    // The time of those who wait for us is over long before: it does not count.
    const { started, released, clientOf, large } = await openHolding({ room, graceMs: 300 });
    const calls = Array.from({ length: 6 }, () =>
      clientOf("mallory", kind, version).unary({ value: new Uint8Array(3 * mib) }),
    );
    await until(() => large() === 2, { timeoutMs: 20_000 });
    const small = clientOf("mallory", kind, version);
    for (let count = 0; count < 50; count++) await small.unary({ value: new Uint8Array(1_000) });
    await small.unary({ value: new Uint8Array(mib / 2) });
    await delay(700);
    expect(large()).toBe(2);
    expect(room.heldBytes).toBeLessThanOrEqual(room.limitBytes);
    released.resolve();
    expect(await Promise.all(calls)).toHaveLength(6);
    expect(started).toHaveLength(6 + 51);
    await until(() => room.heldBytes === 0);
  },
);

test("SEC-6 large bodies of one key leave room for another's", async () => {
  const room = new AssemblyRoom(MAX_MESSAGE_BYTES + 8 * mib); // for three of 3 MiB, if they were one key's to have
  const { released, clientOf, large } = await openHolding({ room });
  const hers = Array.from({ length: 4 }, () =>
    clientOf("mallory", createConnectTransport).unary({ value: new Uint8Array(3 * mib) }),
  );
  await until(() => large() === 1);
  const his = clientOf("alice", createConnectTransport).unary({ value: new Uint8Array(3 * mib) });
  await until(() => large() === 2);
  released.resolve();
  await Promise.all([...hers, his]);
});

test("SEC-5 a large body that waits too long is refused, and one whose client leaves gives its place back", async () => {
  const room = roomForTwo();
  const { released, clientOf, large } = await openHolding({ room, roomPatienceMs: 500 });
  const call = (signal?: AbortSignal) =>
    clientOf("mallory", createConnectTransport).unary(
      { value: new Uint8Array(3 * mib) },
      { ...(signal && { signal }) },
    );
  const served = [call(), call()];
  await until(() => large() === 2);
  const refused = ConnectError.from(await call().catch((error: unknown) => error));
  expect(refused.code).toBe(Code.ResourceExhausted);
  expect(refused.rawMessage).toBe(
    "large messages of other calls hold all room for 0.5 s: send fewer at once, or smaller ones",
  );
  const leaving = new AbortController();
  const left = call(leaving.signal).catch((error: unknown) => ConnectError.from(error).code);
  await delay(100);
  leaving.abort();
  expect(await left).toBe(Code.Canceled);
  released.resolve();
  await Promise.all(served);
  await until(() => room.heldBytes === 0);
  await call();
});
