import { createHash, createPrivateKey, createPublicKey, hkdfSync, type KeyObject } from "node:crypto";
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from "jose";
import { type Place, textCodec } from "../../../bus/buckets/bucket.ts";

/*
 * The JWT with which a person came to a gateway, on its way to the bridge, which exchanges it for tokens of MCP servers (RFC 8693).
 *
 * SUBJECT-1  Nothing is handed over unasked. A bridge that needs the token of a person, and has none, writes its public key under
 *            `wanted.<person>`. From then on each gateway writes under `token.<person>` what the person comes with, before it passes the
 *            request on: each token once for each such key.
 * SUBJECT-2  A token is sealed for the holders of the bridges' key (ECDH-ES with X25519, A256GCM), on its way and where it is stored.
 *            On the bus, only gateways and bridges may read or write one.
 * SUBJECT-3  Of the tokens of a person the one stands that ends last. After its end it is of no use; with its bucket's age it is gone.
 * SUBJECT-4  What is sealed names its person: under the key of another one it is nothing.
 * SUBJECT-5  It is shown to the issuer alone that the server's entry names, which an operator has written; never to a server.
 */

export interface SubjectToken {
  readonly token: string;
  readonly principal: string;
  readonly expiresAtMs: number;
}

const bucket = "toolbus_subject_tokens";

/** Public keys, by person. */
export const wantedSubjects: Place<string> = { bucket, prefix: "wanted.", codec: textCodec };
/** Compact JWEs, likewise. */
export const subjectTokens: Place<string> = { bucket, prefix: "token.", codec: textCodec };

export function keyOfSubject(principal: string): string {
  return createHash("sha256").update(principal).digest("base64url");
}

export interface SubjectKeys {
  readonly publicKey: string;
  readonly privateKey: KeyObject;
}

const X25519 = { kty: "OKP", crv: "X25519" };
/** PKCS #8, up to the key. */
const PKCS8 = Buffer.from("302e020100300506032b656e04220420", "hex");

/** All who have the secret have the same pair. */
export function subjectKeysFrom(secret: Uint8Array): SubjectKeys {
  const raw = Buffer.from(hkdfSync("sha256", secret, "", "toolbus subject tokens", 32));
  const privateKey = createPrivateKey({ key: Buffer.concat([PKCS8, raw]), format: "der", type: "pkcs8" });
  return { privateKey, publicKey: createPublicKey(privateKey).export({ format: "jwk" }).x ?? "" };
}

export function sealSubjectToken({ expiresAtMs, ...subject }: SubjectToken, publicKey: string): Promise<string> {
  const sealing = new CompactEncrypt(new TextEncoder().encode(JSON.stringify(subject)));
  const header = { alg: "ECDH-ES", enc: "A256GCM", expiresAtMs };
  return sealing.setProtectedHeader(header).encrypt({ ...X25519, x: publicKey });
}

/** When it ends, which is no secret. */
export function endOfSealed(sealed: string): number {
  return Number(decodeProtectedHeader(sealed).expiresAtMs);
}

/** Undefined for what is sealed for others, and for what is somebody else's (SUBJECT-4). */
export async function openSubjectToken(sealed: string, principal: string, keys: readonly SubjectKeys[]) {
  for (const { privateKey } of keys) {
    const opened = await compactDecrypt(sealed, privateKey).catch(() => undefined);
    if (opened === undefined) continue;
    const subject: Omit<SubjectToken, "expiresAtMs"> = JSON.parse(new TextDecoder().decode(opened.plaintext));
    return subject.principal === principal ? subject.token : undefined;
  }
  return undefined;
}
