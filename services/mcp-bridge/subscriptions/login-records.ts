import { openBucketView } from "#runtime/bus/buckets/bucket-view.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import type { Logger } from "#runtime/lifecycle/logger.ts";
import { LoginRecords } from "../auth/records.ts";
import { createSealing } from "../auth/sealing.ts";

const bytes = { encode: (value: Uint8Array) => value, decode: (value: Uint8Array) => value };
const PLACE = { bucket: "toolbus_mcp_logins", prefix: "", codec: bytes } as const;

/** The logins of all, read before this resolves and followed from then on; sealed by the keys. */
export async function openLoginRecords(bus: Bus, keys: readonly Uint8Array[], logger: Logger) {
  const bucket = createBucket<Uint8Array>(bus, PLACE);
  const followed = await openBucketView(bucket, (fault) => logger.error(fault));
  const [first, ...others] = keys;
  const sealing = first && createSealing([first, ...others]);
  return {
    records: new LoginRecords({ bucket, view: followed.view, sealing }),
    [Symbol.asyncDispose]: () => followed[Symbol.asyncDispose](),
  };
}
