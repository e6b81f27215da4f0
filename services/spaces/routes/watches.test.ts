import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { textContent } from "#runtime/content/text.ts";
import type { LogUpdate } from "#runtime/rpc/watching/log-update.ts";
import { openTestSpaces, type TestSpaces, toolResult } from "../testing/test-spaces.ts";

type Answer = { update: LogUpdate<{ sequence: bigint }> | { case: undefined } };

let room: TestSpaces;
beforeAll(async () => {
  room = await openTestSpaces();
});
afterAll(() => room[Symbol.asyncDispose]());

/** The first so many answers; `once` is done when the first has come. */
async function told(watch: AsyncIterable<Answer>, count: number, once?: () => unknown): Promise<string[]> {
  const seen: string[] = [];
  for await (const { update } of watch) {
    if (update.case === "event") seen.push(`${update.value.sequence}`);
    if (update.case === "start") seen.push(`start ${update.value.nextSequence}`);
    if (update.case === "gap") seen.push(`gap ${update.value.firstSequence}-${update.value.lastSequence}`);
    if (seen.length === 1) await once?.();
    if (seen.length === count) break;
  }
  return seen;
}

const tooFar = (last: bigint) => ({
  code: 11, // out_of_range
  message: expect.stringContaining(`has no event ${last + 2n}: the next one is ${last + 1n}`),
});

describe("TOOL-13 a watch of a space", () => {
  const watch = (spaceId: string, fromSequence?: bigint) =>
    room.clients.spaces.watchSpace({ spaceId, ...(fromSequence !== undefined && { fromSequence }) });
  const say = async (spaceId: string) =>
    (await room.clients.spaces.sendMessage({ spaceId, content: textContent("hi") })).message?.sequence ?? 0n;

  test("TOOL-13 begins now, with all, or in the middle, and sees everything once from wherever it goes on", async () => {
    const spaceId = await room.openSpace("begins");
    for (let n = 0; n < 4; n++) await say(spaceId);
    const all = await told(watch(spaceId, 0n), 5); // the person who speaks has joined
    expect(all).toEqual(all.toSorted((one, other) => Number(one) - Number(other)));
    for (const [index, sequence] of all.entries()) {
      expect(await told(watch(spaceId, BigInt(sequence)), 5 - index)).toEqual(all.slice(index));
    }
    const next = BigInt(all.at(-1) ?? 0) + 1n;
    const now = await told(watch(spaceId), 2, () => say(spaceId));
    expect(now).toEqual([`start ${next}`, `${next}`]);
    expect(await told(watch(spaceId, next), 1)).toEqual([`${next}`]);
  });

  test("TOOL-13 is told what the space keeps no longer, and refused what it has not come to", async () => {
    const spaceId = await room.openSpace("trimmed");
    for (let n = 0; n < 5; n++) await say(spaceId);
    const all = (await told(watch(spaceId, 0n), 6)).map(BigInt);
    const [, second = 0n, third = 0n, fourth = 0n] = all;
    const kept = all.slice(3).map(String);
    const filter = `toolbus.space.${spaceId}`;
    await room.bus.manager.streams.purge("TOOLBUS_SPACES", { filter, seq: Number(fourth) });
    expect(await told(watch(spaceId, 0n), 4)).toEqual([`gap 1-${third}`, ...kept]);
    expect(await told(watch(spaceId, second), 4)).toEqual([`gap ${second}-${third}`, ...kept]);
    expect(await told(watch(spaceId, fourth), 3)).toEqual(kept);
    const last = all.at(-1) ?? 0n;
    await expect(told(watch(spaceId, last + 2n), 1)).rejects.toMatchObject(tooFar(last));
  });
});

describe("TOOL-9 a watch of an inbox", () => {
  const watch = (owner: object, fromSequence?: bigint) =>
    room.clients.inbox.watchInboxEvents({ ...owner, ...(fromSequence !== undefined && { fromSequence }) });
  let calls = 0;

  async function deliver(owner: { sessionId: string; agent: string }, count: number): Promise<bigint[]> {
    for (let n = 0; n < count; n++) {
      await room.clients.delivery.deliverEvent({ event: toolResult(owner, `tr:watched${calls++}`) });
    }
    const { events } = await room.clients.inbox.listInboxEvents(owner);
    return events.map(({ sequence }) => sequence);
  }

  test("TOOL-9 begins now, with all that waits, or in the middle, and sees everything once from wherever it goes on", async () => {
    const owner = { sessionId: "inbox-begins", agent: "writer" };
    const all = await deliver(owner, 4);
    for (const [index, sequence] of [0n, ...all.slice(1)].entries()) {
      expect(await told(watch(owner, sequence), 4 - index)).toEqual(all.slice(index).map(String));
    }
    const next = (all.at(-1) ?? 0n) + 1n;
    expect(await told(watch(owner), 2, () => deliver(owner, 1))).toEqual([`start ${next}`, `${next}`]);
  });

  test("TOOL-9 is told what waits no longer when it goes on, and refused what it has not come to", async () => {
    const owner = { sessionId: "inbox-trimmed", agent: "writer" };
    const all = await deliver(owner, 4);
    const [, second = 0n, third = 0n] = all;
    await room.bus.manager.streams.purge("TOOLBUS_INBOX", { seq: Number(third) });
    const kept = all.slice(2).map(String);
    expect(await told(watch(owner, second), 3)).toEqual([`gap ${second}-${second}`, ...kept]);
    expect(await told(watch(owner, third), 2)).toEqual(kept);
    expect(await told(watch(owner, 0n), 2)).toEqual(kept);
    const last = all.at(-1) ?? 0n;
    await expect(told(watch(owner, last + 2n), 1)).rejects.toMatchObject(tooFar(last));
  });
});
