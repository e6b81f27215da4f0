import { expect, test } from "vitest";
import { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { keyOfSubject, openSubjectToken, subjectKeysFrom } from "#runtime/rpc/access/tokens/subject-tokens.ts";
import { until } from "#runtime/time/until.ts";
import { HeldTokens } from "./held-tokens.ts";

const keys = subjectKeysFrom(Buffer.alloc(32, 1));
const key = keyOfSubject("ada");
const subject = (token: string, forMs = 60_000) => ({ token, principal: "ada", expiresAtMs: Date.now() + forMs });

function openHeld(bucket = createMemoryBucket<string>()) {
  const [writes, faults]: [string[], string[]] = [[], []];
  const parts = { isDown: false };
  const tokens: Pick<typeof bucket, "update"> = {
    async update(name, decide) {
      if (parts.isDown) throw new Error("the bus is away");
      const updated = await bucket.update(name, decide);
      if (updated.hasChanged) writes.push(name);
      return updated;
    },
  };
  const wanted = new BucketView<string>();
  const want = (revision: number) => wanted.apply({ kind: "set", key, value: keys.publicKey, revision });
  const held = new HeldTokens(tokens, wanted, (fault) => faults.push(fault));
  const standing = async () => {
    const stored = await bucket.read(key);
    return stored && (await openSubjectToken(stored.value, "ada", [keys]));
  };
  return { held, want, standing, writes, faults, parts, bucket };
}

test("SEC-7 a token that nobody wants goes nowhere; once it is wanted it is handed over, once, sealed", async () => {
  const { held, want, standing, writes, bucket } = openHeld();
  await held.keep(subject("one"));
  expect(writes).toEqual([]);
  want(1);
  await until(async () => (await standing()) === "one");
  const again = subject("two", 120_000);
  for (let n = 0; n < 3; n++) await held.keep(again);
  expect([await standing(), writes]).toEqual(["two", [key, key]]);
  expect(JSON.stringify(await bucket.read(key))).not.toContain("two");
  want(2);
  await until(() => writes.length === 3);
});

test("of several tokens of a person the one stands that ends last, and none that has ended", async () => {
  const { held, want, standing, bucket } = openHeld();
  want(1);
  await held.keep(subject("over", -1));
  expect(await standing()).toBeUndefined();
  await held.keep(subject("long", 120_000));
  const other = openHeld(bucket);
  other.want(1);
  for (const gateway of [held, other.held]) await gateway.keep(subject("short"));
  expect(await standing()).toBe("long");
});

test("what could not be handed over is, with the next request, and the fault names no token", async () => {
  const { held, want, standing, faults, parts } = openHeld();
  want(1);
  parts.isDown = true;
  const one = subject("one");
  await held.keep(one);
  expect(faults).toEqual(["a person's token cannot be handed over: the bus is away"]);
  parts.isDown = false;
  await held.keep(one);
  expect(await standing()).toBe("one");
});

test("what is sealed for one person opens as nobody else's, and by no other key", async () => {
  const { held, want, bucket } = openHeld();
  want(1);
  await held.keep(subject("one"));
  const stored = (await bucket.read(key))!.value;
  expect(await openSubjectToken(stored, "eve", [keys])).toBeUndefined();
  const others = [subjectKeysFrom(Buffer.alloc(32, 2))];
  expect(await openSubjectToken(stored, "ada", others)).toBeUndefined();
});
