import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import type { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { callPatience } from "#runtime/bus/link/call-patience.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { DEFAULT_GRANT, keyOfPrincipal } from "#runtime/rpc/access/grantees.ts";

export type GrantRecords = ReturnType<typeof createGrantRecords>;

/**
 * What this gateway tells all services of grants: see `runtime/rpc/access/grantees.ts`. `view`: of the bucket, which other gateways write too; where no
 * tokens are taken, there is none.
 */
export function createGrantRecords(
  bucket: Pick<Bucket<readonly string[]>, "update">,
  view: Pick<BucketView<readonly string[]>, "get"> | undefined,
  onFault: (fault: string) => void,
) {
  async function write(key: string, names: readonly string[]) {
    const text = String(names);
    await bucket.update(key, (current = []) => (String(current) === text ? undefined : names));
  }

  return {
    /** Says for whom everything without grants is. Another answer than the one before is told as a fault, and holds. */
    async keepDefault(principals: readonly string[]): Promise<void> {
      let before: readonly string[] | undefined;
      const names = [...principals].sort();
      await bucket.update(DEFAULT_GRANT, (current) => {
        before = current;
        return String(current) === String(names) ? undefined : names;
      });
      if (before !== undefined && String(before) !== String(names)) onFault(faultOfDefault(before, names));
    },
    /** Says what the token of a principal grants it; at once, if the latest token at any gateway granted the same. */
    async keep(principal: string, grants: readonly string[]): Promise<void> {
      const key = keyOfPrincipal(principal);
      if (String(view?.get(key)?.value ?? []) === String(grants)) return;
      try {
        await callPatience.run(() => write(key, grants));
      } catch (error) {
        // what asks for a grant is refused, with words; all else needs none
        onFault(`what a token grants cannot be stored: ${messageFromUnknown(error)}`);
      }
    },
  };
}

/** The record is one for all gateways, and the gateway that starts last has its way. */
function faultOfDefault(before: readonly string[], names: readonly string[]): string {
  const [was, is] = [before, names].map((list) => (list.length === 0 ? "nobody" : list.join(", ")));
  return `what has no grants was for ${was}, and is for ${is} from now on: give all gateways the same keys, TOOLBUS_OPERATORS and TOOLBUS_DEFAULT_GRANT`;
}
