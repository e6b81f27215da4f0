import { describe, expect, test } from "vitest";
import { refuse } from "#runtime/failure/failure.ts";
import type { StoredResult } from "#runtime/results/store/store.ts";
import type { Rooms } from "./built-in.ts";
import { callBuiltIn } from "./built-ins.ts";

const digest = "0".repeat(64);
const whole = Buffer.from(JSON.stringify(`plain, é, 漢字, 👩‍🚀 and more ${"ü👍x".repeat(9_000)} END`));
const ownersBySession: Record<string, string> = { s: "ann", fork: "ann", theirs: "bob" };

const rooms = {
  results: {
    find: async (reference: string): Promise<StoredResult | undefined> =>
      reference.endsWith(digest)
        ? { reference, sessionId: "s", bytes: whole.length, sha256: new Uint8Array(), storedMs: 0, nuid: "" }
        : undefined,
    async *read(_: StoredResult, offset: number) {
      for (let at = offset; at < whole.length; at += 1_000) yield whole.subarray(at, at + 1_000);
    },
  },
  sessions: {
    async haveOneOwner(one: string, other: string) {
      const owner = ownersBySession[one] ?? refuse("not_found", `no session ${one}`, { reason: "SESSION_NOT_FOUND" });
      return owner === ownersBySession[other];
    },
  },
} as unknown as Rooms;

async function read(given: object, sessionId = "s", isByOwner = true) {
  const call = { callId: "c", sessionId, agent: "a", principal: "", isByOwner };
  const { outputJson, isError } = await callBuiltIn(rooms, "read_result", call, JSON.stringify(given));
  return { isError, ...JSON.parse(outputJson) };
}

const reference = `s.sha256-${digest}`;

describe("read_result", () => {
  test.each([4, 5, 7, 1_000, 1_001, 32_768])(
    "LOOP-8 gives the whole in parts of whole characters, of at most %i bytes",
    async (limit) => {
      const isSlow = limit < 100;
      const parts: string[] = [];
      let offset: number | null = isSlow ? whole.length - 500 : 0;
      const start = offset;
      while (offset !== null) {
        const part: { text: string; next_offset: number | null; bytes: number } = await read({
          reference,
          offset,
          limit,
        });
        expect(Buffer.byteLength(part.text)).toBeLessThanOrEqual(limit);
        expect(part.bytes).toBe(whole.length);
        parts.push(part.text);
        offset = part.next_offset;
      }
      const text = parts.join("");
      expect(text.includes("\uFFFD")).toBe(false);
      expect(whole.subarray(start).toString().endsWith(text)).toBe(true);
      expect(Buffer.byteLength(text)).toBeGreaterThan(whole.length - start - 4);
    },
  );

  test("LOOP-8 begins with the first whole character at or after its offset, and says where that is", async () => {
    const second = Buffer.from('"plain, é').length - 1; // in the middle of é
    expect(await read({ reference, offset: second, limit: 9 })).toMatchObject({ offset: second + 1, text: ", 漢字" });
    expect(await read({ reference, offset: whole.length })).toMatchObject({ text: "", next_offset: null });
    expect(await read({ reference, offset: whole.length + 1 })).toMatchObject({ isError: true });
    expect(await read({ reference, limit: 32_769 })).toMatchObject({ isError: true });
  });

  test("LOOP-8 a fork reads what its owner's other session has; results of others, and unknown ones, are not there", async () => {
    expect(await read({ reference, limit: 4 }, "fork")).toMatchObject({ isError: false, text: '"pla' });
    const gone = { isError: true, error: expect.stringContaining("it never was, or is no longer kept") };
    expect(await read({ reference }, "theirs")).toMatchObject(gone);
    for (const other of [`nowhere.sha256-${digest}`, "s.sha256-1", `s.sha256-${"1".repeat(64)}`])
      expect(await read({ reference: other })).toMatchObject(gone);
    expect(await read({ reference }, "s", false)).toMatchObject({ isError: true });
  });
});
