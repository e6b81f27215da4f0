import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type AuditEvent, AuditEventSchema, AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { evict } from "#runtime/bus/quota/eviction.ts";
import { shrinkStore } from "#runtime/bus/testing/shrink-store.ts";
import { openTestBus } from "../../test/harness/bus.ts";
import { openSlices } from "../rpc/handling/messages/slices.ts";
import { withPrincipal } from "../rpc/identity.ts";
import { until } from "../time/until.ts";
import {
  AUDIT_EVICTION,
  auditSequenceSince,
  type FollowAudit,
  followAudit,
  openAuditTrail,
  readAuditBackwards,
} from "./trail.ts";

type Told = AsyncIterable<{ case: "event"; value: AuditEvent }>;

test("ORCH-11 what is recorded can be followed live, and read backwards, with its place in the trail", async () => {
  await using bus = await openTestBus();
  const stop = new AbortController();
  const followed: string[] = [];
  const following = (async () => {
    for await (const { value: event } of followAudit(bus, { from: 0n, signal: stop.signal }) as Told) {
      followed.push(`${event.sequence} ${event.service} ${event.message}`);
      if (followed.length === 3) stop.abort();
    }
  })();
  {
    await using trail = openAuditTrail(bus, "tool-router");
    for (const message of ["one", "two", "three"]) trail.record({ kind: AuditKind.PERMITTED, agent: "a", message });
  }
  await following;
  expect(followed.map((line) => line.split(" ")[0])).toEqual(["1000", "1001", "1002"]);
  expect(followed[0]).toBe("1000 tool-router one");
  const past: bigint[] = [];
  for await (const event of readAuditBackwards(bus, 1_002, new AbortController().signal)) past.push(event.sequence);
  expect(past).toEqual([1_001n, 1_000n]);
});

test("SEC-5 a message is read once for all who follow the trail for the same words, and by its own words for others", async () => {
  await using bus = await openTestBus();
  {
    await using trail = openAuditTrail(bus, "tool-router");
    for (const agent of ["a", "b"]) trail.record({ kind: AuditKind.PERMITTED, agent });
  }
  const follow = async (words?: string[]) => {
    const events: AuditEvent[] = [];
    const options = { from: 0n, ...(words && { words }), signal: new AbortController().signal };
    for await (const { value } of followAudit(bus, options) as Told) if (events.push(value) === 2) return events;
    return events;
  };
  const [one = [], other = [], ofB = []] = await Promise.all([follow(), follow(), follow(['"b"'])]);
  expect(one.map(({ agent }) => agent)).toEqual(["a", "b"]);
  expect(other.map((event, n) => event === one[n])).toEqual([true, true]);
  expect(ofB.map(({ agent }) => agent)).toEqual(["", "b"]);
});

test("ORCH-11 the trail can be entered at a time", async () => {
  await using bus = await openTestBus();
  const { signal } = new AbortController();
  expect(await auditSequenceSince(bus, new Date(0), signal)).toBe(1_000);
  const append = async (message: string) => {
    await using trail = openAuditTrail(bus, "tool-router");
    trail.record({ kind: AuditKind.BLOCKED, message });
  };
  await append("one");
  const { time } = (await bus.manager.streams.getMessage("TOOLBUS_AUDIT", { seq: 1 }))!;
  const later = new Date(time.getTime() + 2);
  await until(() => Date.now() > later.getTime());
  await append("two");
  expect(await auditSequenceSince(bus, new Date(0), signal)).toBe(1_000);
  expect(await auditSequenceSince(bus, later, signal)).toBe(2_000);
  for (const future of [new Date(Date.now() + 3_600_000), new Date("2263-01-01"), new Date("9999-12-31")])
    expect(await auditSequenceSince(bus, future, signal)).toBe(3_000);
  for (const past of [new Date("1600-01-01"), new Date("0001-01-01")])
    expect(await auditSequenceSince(bus, past, signal)).toBe(1_000);
});

test("SEC-5 of past events only those are read whose lines have the words; each has its place", async () => {
  await using bus = await openTestBus();
  {
    await using trail = openAuditTrail(bus, "tool-router");
    for (const tool of ["one", 'a "second"', "one"]) trail.record({ kind: AuditKind.PERMITTED, agent: "clerk", tool });
  }
  const words = ["clerk", 'a "second"'].map((text) => JSON.stringify(text));
  const past = await Array.fromAsync(readAuditBackwards(bus, 0, AbortSignal.timeout(5_000), words));
  expect(past.map(({ sequence, tool }) => [sequence, tool])).toEqual([
    [1_002n, ""],
    [1_001n, 'a "second"'],
    [1_000n, ""],
  ]);
});

test("ORCH-11 what is recorded within a moment is one message, in the order of its kinds, and is paged as if each were one", async () => {
  await using bus = await openTestBus();
  const { signal } = new AbortController();
  {
    await using trail = openAuditTrail(bus, "tool-router");
    const kinds = [...Array(1_200).fill(AuditKind.PERMITTED), AuditKind.BLOCKED, AuditKind.PERMITTED];
    kinds.forEach((kind, n) => void trail.record({ kind, message: `${n}` }));
  }
  const { messages } = (await bus.manager.streams.info("TOOLBUS_AUDIT")).state;
  expect(messages).toBe(5); // 500, 500, 200, the other kind, the last
  const pages: string[] = [];
  let before = 0;
  for (;;) {
    const page = [];
    for await (const event of readAuditBackwards(bus, before, signal)) if (page.push(event) === 70) break;
    pages.push(...page.map(({ message }) => message));
    if (page.length < 70) break;
    before = Number(page.at(-1)?.sequence);
  }
  expect(pages).toEqual(Array.from({ length: 1_202 }, (_, n) => `${1_201 - n}`));
  const from = await auditSequenceSince(bus, new Date(0), signal);
  for await (const { value } of followAudit(bus, { from: BigInt(from + 3), signal }) as Told) {
    expect(value.message).toBe("3");
    break;
  }
});

test("an event that cannot be stored in time is told, and hinders nobody", async () => {
  await using bus = await openTestBus();
  const lost: string[] = [];
  {
    await using trail = openAuditTrail(bus, "bad subject", {
      error: (details) => lost.push((details as { event: AuditEvent }).event.message),
    });
    trail.record({ kind: AuditKind.BLOCKED, message: "nowhere to go" });
  }
  expect(lost).toEqual(["nowhere to go"]);
});

test("ORCH-11 a watch of the trail begins now, with all, or in the middle, and is told what is kept no longer", async () => {
  await using bus = await openTestBus();
  const record = async (...messages: string[]) => {
    await using trail = openAuditTrail(bus, "tool-router");
    for (const message of messages) trail.record({ kind: AuditKind.PERMITTED, message });
  };
  /** The first so many updates; `once` is done when the first has come. */
  const told = async (options: Omit<FollowAudit, "signal">, count: number, once?: () => unknown) => {
    const seen: string[] = [];
    for await (const update of followAudit(bus, { ...options, signal: new AbortController().signal })) {
      if (update.case === "event") seen.push(`${update.value.sequence} ${update.value.message}`);
      if (update.case === "start") seen.push(`start ${update.value.nextSequence}`);
      if (update.case === "gap") seen.push(`gap ${update.value.firstSequence}-${update.value.lastSequence}`);
      if (seen.length === 1) await once?.();
      if (seen.length === count) break;
    }
    return seen;
  };
  await record("a", "b");
  await record("c");
  await record("d", "e");
  const all = ["1000 a", "1001 b", "2000 c", "3000 d", "3001 e"];
  for (const [index, from] of [0n, 1_001n, 2_000n, 3_000n, 3_001n].entries()) {
    expect(await told({ from }, 5 - index)).toEqual(all.slice(index));
  }
  expect(await told({ from: undefined }, 2, () => record("f"))).toEqual(["start 4000", "4000 f"]);
  await bus.manager.streams.purge("TOOLBUS_AUDIT", { seq: 3 });
  expect(await told({ from: 0n }, 2)).toEqual(["gap 1000-2999", "3000 d"]);
  expect(await told({ from: 1_001n }, 2)).toEqual(["gap 1001-2999", "3000 d"]);
  expect(await told({ from: 3_001n }, 2)).toEqual(["3001 e", "4000 f"]);
  const sinceEver = await auditSequenceSince(bus, new Date(0), new AbortController().signal);
  expect(await told({ from: 0n, notBefore: sinceEver }, 2)).toEqual(["gap 1000-2999", "3000 d"]); // trail-3
  await expect(told({ from: 5_001n }, 1)).rejects.toMatchObject({
    code: "out_of_range",
    reason: "SEQUENCE_NOT_REACHED",
    message: "the audit trail has no event 5001: the next one is 5000",
  });
});

test("ORCH-11 records that cannot be read, and texts that no wire takes, end no reading of the trail", async () => {
  await using bus = await openTestBus();
  const newer = '{"kind":"AUDIT_KIND_OF_LATER","message":"newer","ofLater":{"a":1}}';
  const halves = '{"kind":"AUDIT_KIND_PERMITTED","message":"half \\ud800 a pair"}';
  await bus.jetstream.publish("toolbus.audit.tool-router.permitted", [newer, "no json", halves].join("\n"));
  await bus.jetstream.publish("toolbus.audit.tool-router.permitted", Uint8Array.of(0xff, 0xfe));
  {
    await using trail = openAuditTrail(bus, "tool-router");
    trail.record({ kind: AuditKind.PERMITTED, message: "also \ud800", agent: "\udc00" });
  }
  const stop = new AbortController();
  const followed: AuditEvent[] = [];
  for await (const { value: event } of followAudit(bus, { from: 0n, signal: stop.signal }) as Told) {
    followed.push(event);
    if (followed.length === 3) stop.abort();
  }
  const past = await Array.fromAsync(readAuditBackwards(bus, 0, new AbortController().signal));
  expect(past.reverse()).toEqual(followed);
  expect(followed.map(({ message, agent }) => message + agent)).toEqual([
    "newer",
    "half \ufffd a pair",
    "also \ufffd\ufffd",
  ]);
  for (const event of followed) expect(fromBinary(AuditEventSchema, toBinary(AuditEventSchema, event))).toEqual(event);
});

test("SEC-6 a principal that fills the audit trail loses its own oldest events, and nobody else's", async () => {
  await using bus = await openTestBus();
  const { signal } = new AbortController();
  await shrinkStore(bus, "TOOLBUS_AUDIT", 2 ** 20);
  {
    await using trail = openAuditTrail(bus, "tool-router");
    trail.record({ kind: AuditKind.BLOCKED, message: "hers" }, "alice");
    trail.record({ kind: AuditKind.CONFIGURED, message: "nobody's" });
    for (let n = 0; n < 60; n++)
      trail.record({ kind: AuditKind.CANCELED, message: `${n} ${"x".repeat(15_000)}` }, "mallory");
  }
  expect(await evict(bus, AUDIT_EVICTION, signal)).toBe(1);
  const left: string[] = [];
  for await (const { message } of readAuditBackwards(bus, 0, signal)) left.push(message.split(" ")[0]!);
  expect(left).toContain("hers");
  expect(left).toContain("nobody's");
  expect(left, "the oldest went").not.toContain("0");
  expect(left, "the latest stay").toContain("59");
  expect(await evict(bus, AUDIT_EVICTION, signal), "there is room").toBe(0);
});

function busy(ms: number): void {
  for (const endsAt = performance.now() + ms; performance.now() < endsAt; );
}

test("SEC-5 however much is read of the past at once, what else has to be done waits for one slice of it", async () => {
  const work = async () => {
    const nextStep = openSlices();
    for (let step = 0; step < 20; step += 1) {
      await nextStep();
      busy(2);
    }
  };
  const lateMs: number[] = [];
  let at = performance.now();
  const other = setInterval(() => {
    lateMs.push(performance.now() - at);
    at = performance.now();
  }, 1);
  await Promise.all(Array.from({ length: 10 }, work));
  clearInterval(other);
  const median = lateMs.toSorted((a, b) => a - b)[Math.floor(lateMs.length / 2)];
  expect(lateMs.length).toBeGreaterThan(30); // 400 ms of work, in slices of 6
  expect(median).toBeLessThan(20);
});

test("SEC-5 who reads much of the past at once keeps nobody else waiting for more than a slice of it", async () => {
  const ended: string[] = [];
  const work = async (principal: string, steps: number) => {
    const nextStep = openSlices();
    for (let step = 0; step < steps; step += 1) {
      await nextStep();
      busy(2);
    }
    ended.push(principal);
  };
  const mallorys = Array.from({ length: 10 }, () => withPrincipal("mallory", () => work("mallory", 12)));
  await Promise.all([...mallorys, withPrincipal("alice", () => work("alice", 12))]);
  expect(ended.indexOf("alice")).toBe(0);
});
