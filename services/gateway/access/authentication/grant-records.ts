import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import { whileWaitedFor } from "#runtime/bus/link/waited.ts";
import { BoundedMap } from "#runtime/collections/bounded-map.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { DEFAULT_GRANT, keyOfPrincipal } from "#runtime/rpc/access/grantees.ts";

/** What this gateway tells all services of grants: see `runtime/rpc/access/grantees.ts`. */
export interface GrantRecords {
  /** Says for whom everything without grants is. */
  keepDefault(principals: readonly string[]): Promise<void>;
  /** Says what the token of a principal grants it; at once, if it granted the same the last time. */
  keep(principal: string, grants: readonly string[]): Promise<void>;
}

const KNOWN_PRINCIPALS = 10_000;

export function createGrantRecords(
  bucket: Pick<Bucket<readonly string[]>, "update">,
  onFault: (fault: string) => void,
): GrantRecords {
  const known = new BoundedMap<string, string>(KNOWN_PRINCIPALS);

  async function write(key: string, names: readonly string[], whenAbsent: readonly string[] | undefined) {
    const text = String(names);
    await bucket.update(key, (current = whenAbsent) => (String(current) === text ? undefined : names));
  }

  return {
    keepDefault: (principals) => write(DEFAULT_GRANT, [...principals].sort(), undefined),
    async keep(principal, grants) {
      if (known.get(principal) === String(grants)) return;
      try {
        await whileWaitedFor(() => write(keyOfPrincipal(principal), grants, []));
        known.set(principal, String(grants));
      } catch (error) {
        // what asks for a grant is refused, with words; all else needs none
        onFault(`what a token grants cannot be stored: ${messageFromUnknown(error)}`);
      }
    },
  };
}
