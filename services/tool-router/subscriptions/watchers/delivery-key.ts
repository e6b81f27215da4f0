import { randomBytes } from "node:crypto";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { refuse } from "#runtime/failure/failure.ts";

const NAME = "delivery-ids";
const BYTES = 32;

const PLACE = {
  bucket: "toolbus_router_keys",
  prefix: "",
  codec: { encode: (key: Uint8Array) => key, decode: keyFromBytes },
} as const;

/** The key of delivery ids that all routers share. Whichever router is first makes it. */
export async function readDeliveryKey(bus: Bus): Promise<Uint8Array> {
  const keys = createBucket<Uint8Array>(bus, PLACE);
  const made = randomBytes(BYTES);
  const { value } = await keys.update(NAME, (standing) => (standing === undefined ? made : undefined));
  return value ?? refuse("internal", "the key of delivery ids was not stored", { reason: "INTERNAL" });
}

function keyFromBytes(bytes: Uint8Array): Uint8Array {
  if (bytes.length !== BYTES) throw new Error(`a key of ${bytes.length} bytes instead of ${BYTES}`);
  return bytes;
}
