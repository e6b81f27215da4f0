import { expect, test } from "vitest";
import { placeFromToken, tokenFromPlace } from "./page-token.ts";

test("a token leads back to its place, whatever that is called", () => {
  for (const place of ["a", "0", "Grüße/x y.z", "~".repeat(300)]) {
    expect(placeFromToken(["calls", "s1"], tokenFromPlace(["calls", "s1"], place))).toBe(place);
  }
  expect(tokenFromPlace(["calls"], "")).toBe("");
  expect(placeFromToken(["calls"], "")).toBe("");
});

test("what was not given out for the list is refused, and the field named", () => {
  const token = tokenFromPlace(["calls", "s1", [2, 3]], "here");
  const foreign = [token, tokenFromPlace(["calls", "s1", [2]], "here"), tokenFromPlace(["sessions"], "here")];
  const malformed = ["here", ".", "..", "aGVyZQ", `${token}x`, `${token}.x`, token.toUpperCase(), "1000"];
  expect(placeFromToken(["calls", "s1", [2, 3]], token)).toBe("here");
  for (const one of [...foreign, ...malformed]) {
    expect(() => placeFromToken(["calls", "s2", [2, 3]], one), one).toThrow(/^page_token: /);
  }
});
