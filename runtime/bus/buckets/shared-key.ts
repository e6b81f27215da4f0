import { createSecretKey, type KeyObject, randomBytes } from "node:crypto";
import { refuse } from "../../failure/failure.ts";
import type { Bus } from "../bus.ts";
import type { BucketName } from "../declarations/declarations.ts";
import { createBucket } from "./stored-bucket.ts";

const BYTES = 32;

/**
 * A key of 32 random bytes that all instances of a service share. Whichever is first makes it. It is prepared for use: Node takes ten
 * times as long for an HMAC whose key is given in bytes.
 */
export async function readSharedKey(
  bus: Bus,
  { bucket, name }: { bucket: BucketName; name: string },
): Promise<KeyObject> {
  const codec = { encode: (key: Uint8Array) => key, decode: keyFromBytes };
  const made = randomBytes(BYTES);
  const { value } = await createBucket<Uint8Array>(bus, { bucket, prefix: "", codec }).update(name, (standing) =>
    standing === undefined ? made : undefined,
  );
  return createSecretKey(value ?? refuse("internal", `the key ${name} was not stored`, { reason: "INTERNAL" }));
}

function keyFromBytes(bytes: Uint8Array): Uint8Array {
  if (bytes.length !== BYTES) throw new Error(`a key of ${bytes.length} bytes instead of ${BYTES}`);
  return bytes;
}
