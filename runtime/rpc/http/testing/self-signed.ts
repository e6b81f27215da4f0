import { generateKeyPairSync, randomBytes, sign } from "node:crypto";
import type { TlsFiles } from "../sockets/doors.ts";

/*
 * A certificate for 127.0.0.1 that signs itself, for tests: X.509 in DER, as RFC 5280 lays it out.
 */

const der = (tag: number, ...parts: Uint8Array[]): Buffer => {
  const body = Buffer.concat(parts);
  const [high, low] = [body.length >> 8, body.length & 0xff];
  const length = high > 0 ? [0x82, high, low] : low < 0x80 ? [low] : [0x81, low];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
};
const sequence = (...parts: Uint8Array[]) => der(0x30, ...parts);
const hex = (text: string) => Buffer.from(text, "hex");
const time = (date: Date) => der(0x18, Buffer.from(`${date.toISOString().replace(/[-:T]|\..*/g, "")}Z`));

const ECDSA_WITH_SHA256 = sequence(der(0x06, hex("2a8648ce3d040302")));
const COMMON_NAME = sequence(der(0x31, sequence(der(0x06, hex("550403")), der(0x0c, Buffer.from("toolbus test")))));
const FOR_LOOPBACK = der(
  0xa3,
  sequence(sequence(der(0x06, hex("551d11")), der(0x04, sequence(der(0x87, Buffer.from([127, 0, 0, 1])))))),
);

export function createSelfSigned(): TlsFiles {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const dayMs = 86_400_000;
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    COMMON_NAME,
    sequence(time(new Date(Date.now() - dayMs)), time(new Date(Date.now() + dayMs))),
    COMMON_NAME,
    publicKey.export({ type: "spki", format: "der" }),
    FOR_LOOPBACK,
  );
  const signature = der(0x03, Buffer.from([0]), sign("sha256", content, privateKey));
  const certificate = sequence(content, ECDSA_WITH_SHA256, signature);
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.toString("base64")}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}
