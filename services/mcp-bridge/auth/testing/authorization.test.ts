import { randomBytes } from "node:crypto";
import { expect, test, vi } from "vitest";
import { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { outcomeOf } from "../../link/outcome/outcome.ts";
import { serverFrom } from "../../testing/connection.ts";
import { type AuthorizationParts, createAuthorizations } from "../authorization.ts";
import { recordKey } from "../record.ts";
import { LoginRecords } from "../records.ts";
import { createSealing } from "../sealing.ts";

const server = serverFrom({ name: "notes", url: "https://notes.example/mcp" });
const origin = { authorizationServer: "https://login.example", resource: "https://notes.example/mcp" };

/** What the requests of one connection get of a login that is to be renewed. */
async function openAuthorization(renew: () => Promise<undefined>, change = (store: () => void) => store()) {
  const view = new BucketView<Uint8Array>();
  const bucket = createMemoryBucket<Uint8Array>({ change, onWrite: (one) => view.apply({ kind: "set", ...one }) });
  const records = new LoginRecords({ bucket, view, sealing: createSealing([randomBytes(32)]) });
  const grant = { origin, accessToken: "access 1", refreshToken: "refresh 1", renewAtMs: Date.now() - 1 };
  await records.update(recordKey("principal:ada", server), () => ({ server: {}, grant }));
  const parts = { records, renewals: { renew }, subjects: {}, secrets: new Map(), allow: [], runAllow: [] };
  const authorizationOf = createAuthorizations(parts as unknown as AuthorizationParts & { runAllow: string[] });
  const authorization = authorizationOf({ server, holder: { runId: "" }, principal: "ada" });
  if (authorization === undefined) throw new Error("it takes tokens");
  return authorization;
}

test("a request does not wait long for an authorization server that says nothing, and the next ones not at all", async () => {
  let renewals = 0;
  const authorization = await openAuthorization(() => {
    renewals += 1;
    return new Promise(() => {});
  });
  vi.useFakeTimers();
  try {
    const first = authorization.token();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await Promise.race([first, Promise.resolve("late")])).toBe("access 1");
    for (let request = 0; request < 5; request++) expect(await authorization.token()).toBe("access 1");
    expect(renewals).toBe(1);
    await vi.advanceTimersByTimeAsync(60_000);
    void authorization.token();
    expect(renewals).toBe(2);
  } finally {
    vi.useRealTimers();
  }
});

test("a request that was refused does not wait for its own end when no other token comes, and is told as not begun", async () => {
  const authorization = await openAuthorization(() => new Promise(() => {}));
  vi.useFakeTimers();
  try {
    const refused = authorization.refused(new Response(null, { status: 401 }), "access 1", false);
    const failure = refused.catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(10_000);
    const told = await Promise.race([failure, Promise.resolve("nothing yet")]);
    expect(told).toMatchObject({ code: "unavailable", reason: "MCP_SERVER_UNAVAILABLE" });
    const text = "it asks for a token: its authorization server has given none yet";
    expect(outcomeOf(told, true)).toEqual({ kind: "refused", text });
  } finally {
    vi.useRealTimers();
  }
});

test("a request that was refused while the store is away is told as not begun", async () => {
  let isAway = false;
  const authorization = await openAuthorization(
    async () => undefined,
    (store) => {
      if (isAway) throw new Failure("unavailable", "the store is away", { reason: "BUS_UNAVAILABLE" });
      store();
    },
  );
  isAway = true;
  const refused = authorization.refused(new Response(null, { status: 401 }), "access 1", false);
  const told = await refused.catch((error: unknown) => error);
  expect(outcomeOf(told, true)).toEqual({ kind: "refused", text: "it asks for a token: the store is away" });
});
