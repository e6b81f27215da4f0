import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { type AuditEvent, AuditEventSchema, AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { AuditFilterSchema } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import type { LogUpdate } from "#runtime/rpc/watching/log-update.ts";
import { type AuditReader, readPage, watchFrom } from "./audit-pages.ts";

const { signal } = new AbortController();

/** A trail of so many events, one a second; every hundredth is a refusal. */
function trailOf(count: number): AuditReader & { read: () => number } {
  let read = 0;
  const eventAt = (sequence: number): AuditEvent => {
    read += 1;
    const kind = sequence % 100 === 0 ? AuditKind.BLOCKED : AuditKind.PERMITTED;
    const agent = sequence % 2 === 0 ? "even" : "odd";
    return create(AuditEventSchema, { sequence: BigInt(sequence), kind, agent, runId: `r${sequence % 10}` });
  };
  return {
    read: () => read,
    async *backwards(before) {
      for (let sequence = before > 0 ? before - 1 : count; sequence > 0; sequence--) yield eventAt(sequence);
    },
    async *follow({ from = BigInt(count + 1), notBefore = 0 }) {
      for (let sequence = Math.max(Number(from), notBefore, 1); sequence <= count; sequence++)
        yield { case: "event", value: eventAt(sequence) };
    },
    sequenceSince: async (time) => Math.ceil(time.getTime() / 1_000),
  };
}

const sequenceOf = (update: LogUpdate<AuditEvent>) => update.case === "event" && update.value.sequence;
const filterOf = (init: Parameters<typeof create<typeof AuditFilterSchema>>[1]) => create(AuditFilterSchema, init);

async function allPages(trail: AuditReader, filter: ReturnType<typeof filterOf>, pageSize: number) {
  const sequences: number[] = [];
  let pages = 0;
  for (let beforeSequence = 0; ; pages++) {
    const page = await readPage(trail, { filter, pageSize, beforeSequence }, signal);
    sequences.push(...page.events.map(({ sequence }) => Number(sequence)));
    beforeSequence = page.nextBefore;
    if (beforeSequence === 0) return { sequences, pages: pages + 1 };
  }
}

test("ORCH-11 pages hold every event that fits, once, the latest first", async () => {
  const filter = filterOf({ kinds: [AuditKind.BLOCKED], agent: "even", runId: "r0" });
  expect((await allPages(trailOf(1_000), filter, 3)).sequences).toEqual(
    Array.from({ length: 10 }, (_, n) => 1_000 - 100 * n),
  );
  expect((await allPages(trailOf(0), filter, 3)).sequences).toEqual([]);
});

test("ORCH-11 events since a time, and no look at those before it", async () => {
  const trail = trailOf(10_000);
  const filter = filterOf({ startTime: timestampFromMs(9_990_000), agent: "odd" });
  expect((await allPages(trail, filter, 100)).sequences).toEqual([9_999, 9_997, 9_995, 9_993, 9_991]);
  expect(trail.read()).toBeLessThan(20);
  const watched = await Array.fromAsync(watchFrom(trail, { filter, fromSequence: 9_996n }, signal));
  expect(watched.map(sequenceOf)).toEqual([9_997n, 9_999n]);
  const sinceThen = await Array.fromAsync(watchFrom(trail, { filter, fromSequence: undefined }, signal));
  expect(sinceThen.map(sequenceOf)).toEqual([9_991n, 9_993n, 9_995n, 9_997n, 9_999n]);
});

test("a page that finds nothing in a long trail is empty, soon, and tells where to go on", async () => {
  const trail = trailOf(120_000);
  const filter = filterOf({ agent: "nobody" });
  const page = await readPage(trail, { filter, pageSize: 10, beforeSequence: 0 }, signal);
  expect(page).toMatchObject({ events: [], nextBefore: 110_001 });
  expect((await allPages(trail, filter, 10)).pages).toBe(12);
});

test("ORCH-11 who may not read all is given its own", async () => {
  const filter = filterOf({});
  const mayRead = async ({ sequence }: AuditEvent) => sequence % 1_500n === 0n;
  const page = await readPage(trailOf(4_000), { filter, pageSize: 10, beforeSequence: 0, mayRead }, signal);
  expect(page).toMatchObject({ events: [{ sequence: 3_000n }, { sequence: 1_500n }], nextBefore: 0 });
  const watched = await Array.fromAsync(watchFrom(trailOf(4_000), { filter, fromSequence: 0n, mayRead }, signal));
  expect(watched.map(sequenceOf)).toEqual([1_500n, 3_000n]);
});
