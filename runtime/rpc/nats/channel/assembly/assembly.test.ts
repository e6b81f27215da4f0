import { Code, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { claimedPrincipal, IDENTITY_HEADER } from "../../../access/callers.ts";
import { AssemblyRoom, MAX_MESSAGE_BYTES } from "../../../handling/messages/assembly.ts";
import { createNatsTransport } from "../../client/transport.ts";
import { serveOnNats } from "../../server/server.ts";
import { EchoService } from "../../testing/echo-service.ts";
import { openEchoWorld } from "../../testing/echo-world.ts";
import { CallMux } from "../mux.ts";

const mib = 2 ** 20;

/** For two messages of 3 MiB of one sender, and what is left to others. */
function smallRoom(mux: CallMux): AssemblyRoom {
  const room = new AssemblyRoom(2 * MAX_MESSAGE_BYTES + 5 * mib);
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

test("SEC-6 large requests of one principal leave room for another's, whose wait is none", async () => {
  await using world = await openEchoWorld();
  const serving = await world.connect();
  const mux = CallMux.of(serving.connection);
  const requestRoom = new AssemblyRoom(MAX_MESSAGE_BYTES + 8 * mib); // for three of 3 MiB, if they were one sender's to have
  Object.assign(mux, { requestRoom });
  const released = Promise.withResolvers<void>();
  const started: string[] = [];
  await using _server = await serveOnNats(serving, {
    service: "large",
    routes: (router) =>
      router.service(EchoService, {
        async unary({ value }, { requestHeader }) {
          const principal = claimedPrincipal(requestHeader);
          started.push(principal);
          if (principal === "mallory") await released.promise;
          return { value: value.subarray(0, 1) };
        },
      }),
  });
  const client = createClient(EchoService, createNatsTransport(await world.connect(), { service: "large" }));
  const large = (sub: string) => {
    const token = `e30.${Buffer.from(JSON.stringify({ sub })).toString("base64url")}.x`;
    return client.unary({ value: new Uint8Array(3 * mib) }, { headers: { [IDENTITY_HEADER]: token } });
  };
  const hers = Array.from({ length: 5 }, () => large("mallory"));
  await until(() => started.length > 0, { timeoutMs: 60_000 });
  await large("alice");
  expect(
    started.filter((name) => name === "mallory"),
    "room is left to others",
  ).toHaveLength(1);
  released.resolve();
  await Promise.all(hers);
  expect(requestRoom.heldBytes).toBe(0);
}, 120_000);

test("SEC-6 of those who wait for room, who holds least comes first", () => {
  const room = new AssemblyRoom(3 * MAX_MESSAGE_BYTES);
  const given: string[] = [];
  for (const sender of ["mallory", "mallory", "mallory", "alice", "bob"]) room.ask(sender, () => given.push(sender));
  expect(given, "the last place is not for who has one").toEqual(["mallory", "mallory", "alice"]);
  room.giveBack("mallory", MAX_MESSAGE_BYTES);
  expect(given.slice(3)).toEqual(["bob"]);
  room.giveBack("alice", MAX_MESSAGE_BYTES);
  room.giveBack("bob", MAX_MESSAGE_BYTES);
  expect(given.slice(4)).toEqual(["mallory"]);
});
