import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const CIPHER = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
export const KEY_BYTES = 32;

export type Sealing = ReturnType<typeof createSealing>;

/**
 * Encrypts what is stored of logins. What was sealed about one thing opens as nothing else. The first key seals, each opens: so a key
 * is changed without a loss.
 */
export function createSealing(keys: readonly [Uint8Array, ...Uint8Array[]]) {
  return {
    seal(text: string, about: string): Uint8Array {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, keys[0], nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(about));
      const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
    },
    /** Undefined for what another key has sealed, or was changed. */
    open: (sealed: Uint8Array, about: string) =>
      keys.map((key) => openWith(key, sealed, about)).find((text) => text !== undefined),
  };
}

function openWith(key: Uint8Array, bytes: Uint8Array, about: string): string | undefined {
  const sealed = Buffer.from(bytes);
  const [nonce, tag, text] = [
    sealed.subarray(0, NONCE_BYTES),
    sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES),
    sealed.subarray(NONCE_BYTES + TAG_BYTES),
  ];
  try {
    const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES }).setAAD(Buffer.from(about));
    decipher.setAuthTag(tag);
    return Buffer.concat([decipher.update(text), decipher.final()]).toString("utf8");
  } catch {
    return undefined; // it is not what this key has sealed
  }
}
