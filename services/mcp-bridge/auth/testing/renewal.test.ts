import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { Failure } from "#runtime/failure/failure.ts";
import type { LoginRecord } from "../record.ts";
import { LoginRecords } from "../records.ts";
import { Renewals } from "../renewal.ts";
import { createSealing } from "../sealing.ts";

const key = "owner.server";
const origin = { authorizationServer: "https://login.example", resource: "https://notes.example/mcp" };
const grantOf = (count: number) => ({ origin, accessToken: `access ${count}`, refreshToken: `refresh ${count}` });
const challenge = { scope: "write", atMs: 1 };

async function openRecords(change?: (store: () => void) => void) {
  const view = new BucketView<Uint8Array>();
  const bucket = createMemoryBucket<Uint8Array>({
    ...(change && { change }),
    onWrite: (one) => view.apply({ kind: "set", ...one }),
  });
  const records = new LoginRecords({ bucket, view, sealing: createSealing([randomBytes(32)]) });
  await records.update(key, () => ({ server: {}, grant: grantOf(1) }));
  return records;
}

/** An authorization server that takes each refresh token once. */
function rotating(meanwhile: () => Promise<unknown>) {
  const used: (string | undefined)[] = [];
  const obtain = async ({ grant }: LoginRecord) => {
    used.push(grant?.refreshToken);
    await meanwhile();
    return { grant: grantOf(used.length + 1) };
  };
  return { used, work: { absent: () => undefined, obtain } };
}

const beginning = { origin, principal: "ada", stateHash: "", codeVerifier: "", expiresAtMs: 1 };
const changes: [string, Partial<LoginRecord>][] = [
  ["a login is begun", { pending: beginning }],
  ["a call is refused for lack of a scope", { wanted: challenge }],
];

test.for(changes)("a grant that is renewed while %s is kept, and so is that", async ([, change]) => {
  const records = await openRecords();
  const { used, work } = rotating(() => records.update(key, (record) => ({ server: {}, ...record, ...change })));
  const grant = await new Renewals(records).renew(key, "access 1", work);
  expect(grant).toEqual(grantOf(2));
  expect(used).toEqual(["refresh 1"]);
  expect(records.find(key)).toEqual({ server: {}, ...change, grant: grantOf(2) });
});

test("a grant that is forgotten while it is renewed stays forgotten", async () => {
  const records = await openRecords();
  const forget = (record?: LoginRecord) => ({ server: {}, ...record, grant: undefined });
  const { work } = rotating(() => records.update(key, forget));
  expect(await new Renewals(records).renew(key, "access 1", work)).toBeUndefined();
  expect(records.find(key)?.grant).toBeUndefined();
});

test("a grant that was renewed is stored when the store is back, and the one before it not again", async () => {
  let isAway = false;
  let failures = 0;
  const records = await openRecords((store) => {
    if (isAway && ++failures < 3) throw new Failure("unavailable", "the store is away", { reason: "BUS_UNAVAILABLE" });
    store();
  });
  const { used, work } = rotating(async () => {
    isAway = true;
  });
  expect(await new Renewals(records).renew(key, "access 1", work)).toEqual(grantOf(2));
  expect(used).toEqual(["refresh 1"]);
  expect(records.find(key)).toEqual({ server: {}, grant: grantOf(2) });
});
