import { type Bucket, type Found, jsonCodec } from "../../buckets/bucket.ts";
import { createBucket } from "../../buckets/stored-bucket.ts";
import type { Bus } from "../../bus.ts";

interface Owner {
  readonly instance: string;
}

/** Who owns a key, as the bucket says; its revision is the fence. */
export type OwnerEntry = Found<Owner>;

/** Read by hand: the library that checks records elsewhere takes 10 MB in each service that owns something. */
const codec = jsonCodec(readOwner);

function readOwner(value: unknown): Owner {
  const { instance } = value as { instance?: unknown };
  if (typeof instance !== "string") throw new TypeError("the record names no instance");
  return { instance };
}

/** By token of their key. */
export function ownerEntries(bus: Bus, kind: string): Bucket<Owner> {
  return createBucket(bus, { bucket: "toolbus_owners", prefix: `${kind}.`, codec });
}
