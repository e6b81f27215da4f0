import { refuse } from "./failure.ts";

export interface UsedShare {
  /** What there is a share of, in words: "this gateway". */
  readonly of: string;
  /** In words that follow a number: "calls in flight". */
  readonly share: string;
  readonly limit: number;
  readonly retryMs: number;
  /** What gives room sooner. */
  readonly remedy?: string;
}

/**
 * SEC-6: a principal, or the address of a stranger, has its share, so that none is without room because of another. Says which share,
 * and when to try again.
 */
export function refuseShare(sender: string, { of, share, limit, retryMs, remedy }: UsedShare): never {
  const retryInMs = String(Math.max(1, Math.ceil(retryMs)));
  return refuse(
    "resource_exhausted",
    `${JSON.stringify(sender.replace("\0", ""))} has its share of ${of}: ${limit} ${share}; ${remedy === undefined ? "" : `${remedy}, or `}try again after ${retryInMs} ms`,
    { reason: "SHARE_EXCEEDED", metadata: { share, limit: String(limit), retry_in_ms: retryInMs } },
  );
}
