import { expect, test } from "vitest";
import { Failure } from "#runtime/failure/failure.ts";
import { refuseMissingSession } from "#runtime/failure/session-owner.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { callerNamed } from "../identity.ts";
import { createSessionOwners } from "./session-owners.ts";
import { createPrincipals } from "./session-principals.ts";

const [alice, mallory] = [callerNamed("alice"), callerNamed("mallory")];

function openStore() {
  const clock = createManualClock();
  const owners = new Map([["main", "mallory"]]);
  const store = { clock, owners, isAway: false, reads: 0 };
  const read = async (id: string) => {
    store.reads += 1;
    if (store.isAway) throw new Failure("unavailable", "it is away", { reason: "BUS_UNAVAILABLE" });
    const principal = owners.get(id);
    return principal === undefined ? undefined : { principal };
  };
  return { store, read };
}

test("SEC-2 a session that was forgotten, and opened anew by somebody else, is not its former owner's", async () => {
  const { store, read } = openStore();
  const { clock, owners } = store;
  const ownership = createSessionOwners(read, clock.now);
  const { findPrincipal } = createPrincipals(async (id) => (await read(id)) ?? refuseMissingSession(id), clock.now);
  for (let n = 0; n < 60; n += 1) {
    await ownership.requireStanding("main", mallory); // who asks again and again is remembered no longer for that
    expect(await findPrincipal("main")).toBe("mallory");
    if (n === 58) owners.set("main", "alice");
    await clock.advance(1_000);
  }
  await clock.advance(5_000);
  await ownership.requireStanding("main", alice);
  await expect(ownership.requireStanding("main", mallory)).rejects.toMatchObject({ reason: "PRINCIPAL_NOT_OWNER" });
  expect(await findPrincipal("main")).toBe("alice");
  expect(store.reads).toBeLessThan(40);
});

test("SEC-2 whose a session is stays known while nobody can be asked, unless there was none any more", async () => {
  const { store, read } = openStore();
  const ownership = createSessionOwners(read, store.clock.now);
  await ownership.requireStanding("main", mallory);
  store.isAway = true;
  await store.clock.advance(60_000);
  await ownership.requireStanding("main", mallory);
  store.isAway = false;
  store.owners.clear();
  await store.clock.advance(5_000);
  await expect(ownership.requireStanding("main", mallory)).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
  store.isAway = true;
  await expect(ownership.requireStanding("main", mallory)).rejects.toMatchObject({ code: "unavailable" });
});

test("SEC-2 while nobody answers whose a session is, one request in a while waits for that", async () => {
  const { store, read } = openStore();
  let silence: PromiseWithResolvers<void> | undefined;
  const readStanding = async (id: string) => {
    const [session] = await Promise.allSettled([read(id), silence?.promise]);
    if (session.status === "rejected") throw session.reason;
    return session.value ?? refuseMissingSession(id);
  };
  const { principalOf } = createPrincipals(readStanding, store.clock.now);
  await principalOf("main");
  store.isAway = true;
  silence = Promise.withResolvers();
  await store.clock.advance(60_000);
  const asking = principalOf("main");
  await store.clock.advance(4_000);
  expect(await principalOf("main")).toBe("mallory");
  silence.resolve();
  expect(await asking).toBe("mallory");
  expect(await principalOf("main")).toBe("mallory");
  expect(store.reads).toBe(2);
  await store.clock.advance(1_000);
  expect(await principalOf("main")).toBe("mallory");
  expect(store.reads).toBe(3);
});
