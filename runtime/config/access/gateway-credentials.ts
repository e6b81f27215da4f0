import { LOCAL_PRINCIPAL } from "../../rpc/identity.ts";
import type { EnvironmentReader } from "../environment.ts";
import { readTokenSettings, type TokenSettings } from "./token-settings.ts";

/** A key and the principal that it stands for. */
export interface ApiKey {
  readonly principal: string;
  readonly key: string;
}

/** How the gateway finds out who calls. */
export interface Credentials {
  /** `none`: everybody who reaches the gateway is `local`, an operator. */
  readonly auth: "required" | "none";
  readonly apiKeys: readonly ApiKey[];
  readonly tokens?: TokenSettings | undefined;
}

const MIN_KEY_LENGTH = 16;

/** What would let in more than was meant is a fault: the gateway does not start with it. */
export function readCredentials(reader: EnvironmentReader): Credentials {
  const auth = reader.string("TOOLBUS_AUTH", {
    meaning:
      "Whether callers must prove who they are. `none` lets every user and program of this machine in as an operator, on loopback only.",
    default: "required",
    oneOf: ["required", "none"],
  });
  const localKey = reader.optionalSecret("TOOLBUS_LOCAL_KEY", {
    meaning: "Key of the principal `local`, an operator.",
    form: `text, at least ${MIN_KEY_LENGTH} characters`,
    whenUnset: "`toolbus up` makes one where no other keys are set",
  });
  const listed = reader.optionalSecret("TOOLBUS_API_KEYS", {
    meaning: "Keys of the gateway, each with the principal that it stands for.",
    form: `list of \`name:KEY\`, each key at least ${MIN_KEY_LENGTH} ASCII characters`,
    whenUnset: "there are no others",
  });
  const apiKeys = [
    ...(localKey === undefined ? [] : [{ principal: LOCAL_PRINCIPAL, key: localKey }]),
    ...keysFrom(reader, listed),
  ];
  const tokens = readTokenSettings(reader);
  refuseBlank(reader);
  if (localKey !== undefined && localKey.length < MIN_KEY_LENGTH)
    reader.faultOfSecret("TOOLBUS_LOCAL_KEY", "a longer key");
  if (new Set(apiKeys.map(({ key }) => key)).size < apiKeys.length)
    reader.faultOfSecret("TOOLBUS_API_KEYS", "another key for each principal: one stands there twice");
  if (auth === "none" && (apiKeys.length > 0 || tokens !== undefined))
    reader.fault("TOOLBUS_AUTH", "none", "nothing, as there are keys or tokens: take them away, or this");
  if (auth === "required" && apiKeys.length === 0 && tokens === undefined)
    reader.fault("TOOLBUS_API_KEYS", undefined, "a list like alice:KEY,bob:KEY, or TOOLBUS_AUTH=none to do without");
  return { auth, apiKeys, tokens };
}

function keysFrom(reader: EnvironmentReader, listed: string | undefined): ApiKey[] {
  if (listed === undefined) return [];
  const keys = listed.split(",").map((entry) => {
    const [, principal = "", key = ""] = /^\s*([\w.@-]{1,256}):([\x21-\x7e]+)\s*$/.exec(entry) ?? [];
    return { principal, key };
  });
  if (keys.some(({ key }) => key.length < MIN_KEY_LENGTH)) {
    const expected = `a list like alice:KEY,bob:KEY, each key at least ${MIN_KEY_LENGTH} ASCII characters long`;
    reader.faultOfSecret("TOOLBUS_API_KEYS", expected);
  }
  if (keys.some(({ principal }) => principal === LOCAL_PRINCIPAL))
    reader.faultOfSecret("TOOLBUS_API_KEYS", `other names than ${LOCAL_PRINCIPAL}, which is always an operator`);
  return keys;
}

/** Elsewhere an empty variable is one that is not set; here it is a key that somebody meant to give. */
function refuseBlank(reader: EnvironmentReader): void {
  for (const name of [
    "TOOLBUS_API_KEYS",
    "TOOLBUS_LOCAL_KEY",
    "TOOLBUS_AUTH",
    "TOOLBUS_JWT_ISSUER",
    "TOOLBUS_JWT_AUDIENCE",
  ]) {
    if (reader.isBlank(name)) reader.fault(name, "", "a value, or not to be set at all");
  }
}
