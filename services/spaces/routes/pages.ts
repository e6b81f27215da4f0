import type { Space } from "#gen/toolbus/space/v1/space_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { placeFromToken, tokenFromPlace } from "#runtime/rpc/page-token.ts";

/** A token towards older messages is the position before which they stand. */
export function tokenFromBefore(before: bigint): string {
  return before === 0n ? "" : String(before);
}

export function beforeFromToken(token: string): bigint {
  if (token === "") return 0n;
  if (!/^[1-9][0-9]{0,18}$/.test(token))
    refuse("invalid_argument", "page_token: comes from no previous answer", {
      reason: "PAGE_TOKEN_INVALID",
      fieldViolations: [{ field: "page_token", message: "comes from no previous answer" }],
    });
  return BigInt(token);
}

const ALL_SPACES = ["spaces"];

/** The page begins behind the last id of the page before. */
export function pageOfSpaces(
  spaces: readonly Space[],
  { pageSize, pageToken }: { pageSize: number; pageToken: string },
) {
  const after = placeFromToken(ALL_SPACES, pageToken);
  const rest = spaces.filter(({ id }) => id > after);
  const page = rest.slice(0, pageSize || rest.length);
  return {
    spaces: page,
    nextPageToken: tokenFromPlace(ALL_SPACES, page.length < rest.length ? (page.at(-1)?.id ?? "") : ""),
  };
}
