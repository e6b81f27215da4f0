import { hash } from "node:crypto";
import { refuse } from "../../failure/failure.ts";

/** A list and what narrows it: a token of another one is refused. */
export type ListName = readonly (string | number | readonly (string | number)[])[];

/** Names where a list goes on: behind a place of its order. No place, which is the list's end, has no token. */
export function tokenFromPlace(list: ListName, place: string): string {
  return place === "" ? "" : `${Buffer.from(place).toString("base64url")}.${sealOf(list, place)}`;
}

/** Refuses what was not given out for this list; empty for its beginning. */
export function placeFromToken(list: ListName, token: string): string {
  if (token === "") return "";
  const [encoded = "", seal] = token.split(".", 2);
  const place = Buffer.from(encoded, "base64url").toString();
  if (place !== "" && token === `${encoded}.${seal}` && seal === sealOf(list, place)) return place;
  return refuse("invalid_argument", "page_token: comes from no previous answer of this list with these filters", {
    reason: "PAGE_TOKEN_INVALID",
    fieldViolations: [{ field: "page_token", message: "comes from no previous answer" }],
  });
}

function sealOf(list: ListName, place: string): string {
  return hash("sha256", JSON.stringify([list, place]), "hex").slice(0, 12);
}
