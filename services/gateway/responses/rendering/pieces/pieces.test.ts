import * as fc from "fast-check";
import { expect, test } from "vitest";
import { Pieces } from "./pieces.ts";

const whole = (text: string) => [...new Pieces().of(text, true)];

test("LOOP-18 a text has the same pieces, however it comes", () => {
  const texts = fc.array(fc.string({ unit: "binary", maxLength: 60 }), { maxLength: 12 });
  fc.assert(
    fc.property(texts, (parts) => {
      const pieces = new Pieces();
      const told: string[] = [];
      let text = "";
      for (const part of parts) {
        text += part;
        told.push(...pieces.of(text, false));
      }
      told.push(...pieces.of(text, true));
      expect(told).toEqual(whole(text));
      expect(told.join("")).toBe(text);
    }),
  );
});

test("LOOP-18 the first piece of a text waits for nothing, and no character is cut in two", () => {
  expect(whole("Hello world")).toEqual(["H", "ello", " wor", "ld"]);
  expect(whole("😀😀😀😀😀😀")).toEqual(["😀", "😀😀😀😀", "😀"]);
  expect([...new Pieces().of("H", false)]).toEqual(["H"]);
  expect(whole("x".repeat(10_000)).length).toBeLessThan(500);
});
