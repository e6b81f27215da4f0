import { isLoopback } from "../../http/loopback.ts";
import type { EnvironmentReader } from "../environment.ts";

/** How a JWT becomes a caller. */
export interface TokenSettings {
  readonly issuer: string;
  /** The token must be for one of them. */
  readonly audiences: readonly string[];
  readonly jwksUrl: URL;
  readonly algorithms: readonly string[];
  readonly clockToleranceMs: number;
  /** Names of claims; one inside of others is named by its path: `realm_access.roles`. */
  readonly principalClaim: string;
  readonly rolesClaim: string | undefined;
  readonly operatorRole: string;
  readonly grantsClaim?: string | undefined;
}

/** Those of key pairs: what is published must not be what signs. */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];

/** Undefined where no tokens are taken. */
export function readTokenSettings(reader: EnvironmentReader): TokenSettings | undefined {
  const issuer = reader.optionalString("TOOLBUS_JWT_ISSUER", {
    meaning: "Callers may send a JWT of this issuer instead of a key: its claim `iss`.",
    whenUnset: "no JWT is taken",
  });
  const audiences = reader.list("TOOLBUS_JWT_AUDIENCE", {
    meaning: "A JWT must be for one of these: its claim `aud`.",
    default: [],
  });
  const jwks = reader.optionalString("TOOLBUS_JWT_JWKS_URL", {
    meaning:
      "Where the issuer publishes its keys (a JWK Set). They are fetched when they are needed, and again when they rotate.",
    form: "URL with https, or http on loopback",
  });
  const algorithms = reader.list("TOOLBUS_JWT_ALGORITHMS", {
    meaning: "Algorithms by which a JWT may be signed.",
    form: `list of ${ALGORITHMS.map((name) => `\`${name}\``).join(", ")}`,
    default: ["RS256", "ES256", "EdDSA"],
  });
  const clockToleranceMs = reader.milliseconds("TOOLBUS_JWT_CLOCK_TOLERANCE", {
    meaning: "How far the clocks of issuer and gateway may differ.",
    default: 10_000,
    min: 0,
    max: 300_000,
  });
  const principalClaim = reader.string("TOOLBUS_JWT_PRINCIPAL_CLAIM", {
    meaning: "Claim of a JWT that names the principal.",
    default: "sub",
  });
  const rolesClaim = reader.optionalString("TOOLBUS_JWT_ROLES_CLAIM", {
    meaning:
      "Claim of a JWT that lists roles, or has them as keys; one inside of others is named by its path, as in `realm_access.roles`.",
    whenUnset: "a JWT makes nobody an operator; `TOOLBUS_OPERATORS` may",
  });
  const operatorRole = reader.string("TOOLBUS_JWT_OPERATOR_ROLE", {
    meaning: "Role that makes an operator.",
    default: "operator",
  });
  const grantsClaim = reader.optionalString("TOOLBUS_JWT_GRANTS_CLAIM", {
    meaning:
      "Claim of a JWT that lists what its principal may use besides what names it: `agent:NAME`, `space:ID`, `tool:NAME`, or `default` for all without grants.",
    whenUnset: "a JWT grants nothing; grants and `TOOLBUS_DEFAULT_GRANT` name principals",
  });
  if (algorithms.some((name) => !ALGORITHMS.includes(name)))
    reader.fault("TOOLBUS_JWT_ALGORITHMS", algorithms.join(","), `some of ${ALGORITHMS.join(", ")}`);
  const url = urlFrom(reader, jwks);
  if (issuer === undefined && audiences.length === 0 && jwks === undefined) return undefined;
  if (issuer === undefined) reader.fault("TOOLBUS_JWT_ISSUER", undefined, "the issuer whose tokens are taken");
  if (audiences.length === 0)
    reader.fault("TOOLBUS_JWT_AUDIENCE", undefined, "whom tokens are for: those for others would hold here, too");
  if (jwks === undefined) reader.fault("TOOLBUS_JWT_JWKS_URL", undefined, "where the issuer publishes its keys");
  const names = { principalClaim, rolesClaim, operatorRole, grantsClaim };
  return { issuer: issuer ?? "", audiences, jwksUrl: url, algorithms, clockToleranceMs, ...names };
}

function urlFrom(reader: EnvironmentReader, text: string | undefined): URL {
  const placeholder = new URL("https://issuer.invalid");
  if (text === undefined) return placeholder;
  const url = URL.parse(text);
  const isLocal = url?.protocol === "http:" && isLoopback(url.hostname);
  if (url !== null && (url.protocol === "https:" || isLocal)) return url;
  reader.fault("TOOLBUS_JWT_JWKS_URL", text, "a URL with https, or one with http on loopback");
  return placeholder;
}
