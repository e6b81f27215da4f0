import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  bytesFromCredit,
  bytesFromFrame,
  FRAME_HEAD_BYTES,
  FrameFlag,
  FrameKind,
  parseCredit,
  parseFrame,
} from "./frame.ts";
import { faultOf } from "./frame-rules.ts";
import { PartAssembler } from "./parts.ts";

const sequences = fc.integer({ min: 0, max: 0xffff_ffff });

describe("a frame", () => {
  test("is read as it was written", () => {
    const kinds = fc.constantFrom(...Object.values(FrameKind));
    fc.assert(
      fc.property(kinds, fc.integer({ min: 0, max: 3 }), sequences, fc.uint8Array(), (kind, flags, sequence, body) => {
        const frame = parseFrame(bytesFromFrame(kind, flags, sequence, body));
        expect(frame && { ...frame, body: [...frame.body] }).toEqual({ kind, flags, sequence, body: [...body] });
      }),
    );
  });

  test("is none when it is too short or of no known kind", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => {
        const isFrame = bytes.length >= FRAME_HEAD_BYTES && bytes[0]! >= 1 && bytes[0]! <= 6;
        expect(parseFrame(bytes) !== undefined).toBe(isFrame);
      }),
    );
  });

  test("has the bytes that the wire's description shows", () => {
    const bytes = bytesFromFrame(FrameKind.credit, 0, 258, bytesFromCredit({ messages: 64, bytes: 65_536 }));
    expect(Buffer.from(bytes).toString("hex")).toBe("0500000001020000004000010000");
  });
});

test("credit is read as it was written", () => {
  fc.assert(
    fc.property(sequences, sequences, (messages, bytes) => {
      expect(parseCredit(bytesFromCredit({ messages, bytes }))).toEqual({ messages, bytes });
    }),
  );
});

describe("BUS-2 a frame against the rules", () => {
  const fault = (kind: number, flags: number, bytes: number, sender: "client" | "server" = "server") =>
    faultOf({ kind: kind as FrameKind, flags, sequence: 0, body: new Uint8Array(bytes) }, sender);

  test("is told from one within them", () => {
    for (const flags of [0, FrameFlag.more, FrameFlag.end]) expect(fault(FrameKind.data, flags, 9)).toBeUndefined();
    for (const kind of [FrameKind.end, FrameKind.heartbeat]) expect(fault(kind, 0, 0)).toBeUndefined();
    expect(fault(FrameKind.credit, 0, 8)).toBeUndefined();
    expect(fault(FrameKind.error, 0, 9)).toBeUndefined();
    expect(fault(FrameKind.cancel, 0, 0, "client")).toBeUndefined();
  });

  test("has a flag, a body or a sender that does not belong to its kind", () => {
    fc.assert(
      fc.property(fc.integer({ min: 4, max: 255 }), (flags) => {
        expect(fault(FrameKind.data, flags, 1)).toContain("flag");
      }),
    );
    expect(fault(FrameKind.data, FrameFlag.more | FrameFlag.end, 1)).toContain("middle of a message");
    for (const kind of [2, 3, 4, 5, 6]) expect(fault(kind, FrameFlag.end, 0, "client")).toContain("flag");
    for (const kind of [2, 6]) expect(fault(kind, 0, 1)).toContain("body");
    for (const bytes of [0, 7, 9]) expect(fault(FrameKind.credit, 0, bytes)).toContain("credit");
    expect(fault(FrameKind.error, 0, 9, "client")).toContain("only servers");
    expect(fault(FrameKind.cancel, 0, 0)).toContain("only clients");
  });
});

test("parts of any sizes give the message again, one after the other", () => {
  const messages = fc.array(fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 6 }), {
    maxLength: 5,
  });
  fc.assert(
    fc.property(messages, (all) => {
      const assembler = new PartAssembler();
      for (const parts of all) {
        const results = parts.map((part, index) => assembler.push(part, index < parts.length - 1));
        expect(results.slice(0, -1).every((result) => result === undefined)).toBe(true);
        expect([...(results.at(-1) ?? [])]).toEqual([...Buffer.concat(parts)]);
      }
    }),
  );
});
