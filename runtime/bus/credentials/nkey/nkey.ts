// An Ed25519 key as NATS writes it: base32 of a prefix that names its role, the 32 bytes, and a checksum (CRC-16/XMODEM, low byte first).
// The client's library computes with keys in JavaScript, which a process that starts has not compiled yet: each look at a key takes
// it 10 ms and more, and a start of the suite takes forty of them. Node's own cryptography takes microseconds.

import { createPrivateKey, type KeyObject, randomBytes } from "node:crypto";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const KEY_BYTES = 32;

/** `SU…` and `U…`: of users, the one role that signs in. */
const SEED_PREFIX = [0x95, 0x00];
const PUBLIC_PREFIX = [0xa0];

/** What stands before the bytes of a private Ed25519 key in PKCS #8 (RFC 8410). */
const PKCS8_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/** A fresh key; everything else about it follows from its seed. */
export function createSeed(): string {
  return encode(SEED_PREFIX, randomBytes(KEY_BYTES));
}

/** Undefined for a text that is no seed. */
export function privateKeyFromSeed(seed: string): KeyObject | undefined {
  const bytes = decode(SEED_PREFIX, seed);
  if (bytes === undefined) return undefined;
  return createPrivateKey({ key: Buffer.concat([PKCS8_PREFIX, bytes]), format: "der", type: "pkcs8" });
}

export function publicTextFromBytes(bytes: Uint8Array): string {
  return encode(PUBLIC_PREFIX, bytes);
}

/** Undefined for a text that is no public key of a user. */
export function bytesFromPublicText(text: string): Buffer | undefined {
  return decode(PUBLIC_PREFIX, text);
}

function encode(prefix: readonly number[], key: Uint8Array): string {
  const payload = Buffer.from([...prefix, ...key]);
  const checksum = checksumOf(payload);
  const bits = Array.from([...payload, checksum & 0xff, checksum >> 8], (byte) => byte.toString(2).padStart(8, "0"));
  const letters = bits.join("").match(/.{1,5}/g) ?? [];
  return letters.map((five) => LETTERS[Number.parseInt(five.padEnd(5, "0"), 2)]).join("");
}

function decode(prefix: readonly number[], text: string): Buffer | undefined {
  const bits = Array.from(text, (letter) => LETTERS.indexOf(letter).toString(2).padStart(5, "0")).join("");
  const bytes = Buffer.from((bits.match(/.{8}/g) ?? []).map((octet) => Number.parseInt(octet, 2)));
  const key = bytes.subarray(prefix.length, prefix.length + KEY_BYTES);
  return encode(prefix, key) === text ? key : undefined; // which compares prefix, length and checksum at once
}

function checksumOf(bytes: Uint8Array): number {
  let checksum = 0;
  for (const byte of bytes) {
    checksum ^= byte << 8;
    for (let bit = 0; bit < 8; bit++) checksum = ((checksum << 1) ^ (checksum & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return checksum;
}
