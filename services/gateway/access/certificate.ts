import { createPrivateKey, X509Certificate } from "node:crypto";
import { unwatchFile, watchFile } from "node:fs";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";
import type { TlsFiles } from "#runtime/rpc/http/server.ts";

/** Where the certificate, with those of its issuers, and its key stand, as PEM. */
export interface CertificatePaths {
  readonly certFile: string;
  readonly keyFile: string;
}

const LOOK_EVERY_MS = 1_000;

/** Throws `failed_precondition` for what cannot be read, and for a key that is locked, or of another certificate. */
export async function readCertificate({ certFile, keyFile }: CertificatePaths): Promise<TlsFiles> {
  const read = (path: string) => readFile(path, "utf8");
  try {
    const [cert, key] = await Promise.all([read(certFile), read(keyFile)]);
    if (/^(-----BEGIN |Proc-Type: 4,)ENCRYPTED/m.test(key)) throw new Error("a passphrase locks it");
    // OpenSSL compares a key with a certificate of its own kind only: any RSA key passes beside a certificate for EC.
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
      throw new Error("it is the key of another certificate");
    createSecureContext({ cert, key });
    return { cert, key };
  } catch (cause) {
    const text = `the certificate ${certFile} cannot be used with the key ${keyFile}: ${messageFromUnknown(cause)}`;
    throw new LocalFailure("failed_precondition", text, { kind: "certificate_unusable", cause });
  }
}

export interface CertificateFollower {
  onRenewed(files: TlsFiles): void;
  /** What stands there now cannot be used; what was read before holds on. */
  onFault(error: unknown): void;
}

/** Reads both files again when one of them changes, as they do when a certificate is renewed. */
export function followCertificate(paths: CertificatePaths, { onRenewed, onFault }: CertificateFollower): Disposable {
  const read = () => void readCertificate(paths).then(onRenewed, onFault);
  const files = [paths.certFile, paths.keyFile];
  // Asked by path: Kubernetes exchanges the directory that the files are links into, which a watch of the file does not see.
  for (const file of files) watchFile(file, { interval: LOOK_EVERY_MS, persistent: false }, read);
  return {
    [Symbol.dispose]() {
      for (const file of files) unwatchFile(file, read);
    },
  };
}
