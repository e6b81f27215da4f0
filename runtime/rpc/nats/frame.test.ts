import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bytesFromCredit, bytesFromFrame, FRAME_HEAD_BYTES, FrameKind, parseCredit, parseFrame } from "./frame.ts";
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

test("credit is read as it was written, and is none in any other length", () => {
  fc.assert(
    fc.property(sequences, sequences, (messages, bytes) => {
      expect(parseCredit(bytesFromCredit({ messages, bytes }))).toEqual({ messages, bytes });
    }),
  );
  expect(parseCredit(new Uint8Array(7))).toBeUndefined();
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
