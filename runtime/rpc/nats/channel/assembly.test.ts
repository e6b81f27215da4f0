import { Code, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { createNatsTransport } from "../client/transport.ts";
import { MAX_MESSAGE_BYTES } from "../frame/parts.ts";
import { serveOnNats } from "../server/server.ts";
import { EchoService } from "../testing/echo-service.ts";
import { openEchoWorld } from "../testing/echo-world.ts";
import { AssemblyRoom } from "./assembly.ts";
import { CallMux } from "./mux.ts";

const mib = 2 ** 20;

/** For two messages of 3 MiB. */
function smallRoom(mux: CallMux): AssemblyRoom {
  const room = new AssemblyRoom(MAX_MESSAGE_BYTES + 5 * mib);
  Object.assign(mux, { requestRoom: room });
  return room;
}

test("SEC-5 of large requests only so many are taken at once: the others wait, all are answered, and small ones go on", async () => {
  await using world = await openEchoWorld();
  const serving = await world.connect();
  const requestRoom = smallRoom(CallMux.of(serving.connection));
  const released = Promise.withResolvers<void>();
  const started: number[] = [];
  let mostHeld = 0;
  await using _server = await serveOnNats(serving, {
    service: "large",
    routes: (router) =>
      router.service(EchoService, {
        async unary({ value }) {
          started.push(value.length);
          mostHeld = Math.max(mostHeld, requestRoom.heldBytes);
          if (value.length > mib) await released.promise;
          return { value: new Uint8Array(1) };
        },
      }),
  });
  const client = createClient(EchoService, createNatsTransport(await world.connect(), { service: "large" }));
  const large = Array.from({ length: 8 }, () => client.unary({ value: new Uint8Array(3 * mib) }));
  await until(() => started.length === 2, { timeoutMs: 30_000 });
  for (let count = 0; count < 50; count++) await client.unary({ value: new Uint8Array(1_000) });
  await client.unary({ value: new Uint8Array(mib / 2) });
  expect(started.filter((length) => length > mib)).toHaveLength(2);
  released.resolve();
  expect(await Promise.all(large)).toHaveLength(8);
  expect(mostHeld).toBeLessThanOrEqual(requestRoom.limitBytes);
  expect(requestRoom.heldBytes).toBe(0);
}, 90_000);

test("SEC-5 a large request that is canceled while it waits or is handled gives its room back", async () => {
  await using world = await openEchoWorld();
  const serving = await world.connect();
  const requestRoom = smallRoom(CallMux.of(serving.connection));
  let started = 0;
  await using _server = await serveOnNats(serving, {
    service: "large",
    drainTimeoutMs: 1,
    routes: (router) =>
      router.service(EchoService, {
        async unary(_, { signal }) {
          started += 1;
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          return {};
        },
      }),
  });
  const client = createClient(EchoService, createNatsTransport(await world.connect(), { service: "large" }));
  const leaving = new AbortController();
  const call = () =>
    client.unary({ value: new Uint8Array(3 * mib) }, { signal: leaving.signal }).catch((error) => error.code);
  const calls = Array.from({ length: 6 }, call);
  await until(() => started === 2, { timeoutMs: 30_000 });
  leaving.abort();
  expect(await Promise.all(calls)).toEqual(calls.map(() => Code.Canceled));
  await until(() => requestRoom.heldBytes === 0);
}, 90_000);
