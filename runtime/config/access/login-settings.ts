import type { EnvironmentReader } from "../environment.ts";
import type { TokenSettings } from "./token-settings.ts";

/** How people log in to the console at the issuer of the gateway's tokens. */
export interface LoginSettings {
  /** The console's own id there, of a client without a secret. */
  readonly clientId: string;
  readonly scope: string;
  /** Origins that a login asks: the issuer's, and those of its endpoints elsewhere. */
  readonly origins: readonly string[];
  readonly issuer: string;
  /** What tokens are to be for. */
  readonly audience: string;
}

/** Undefined where the console takes keys only. */
export function readLoginSettings(
  reader: EnvironmentReader,
  tokens: Pick<TokenSettings, "issuer" | "audiences"> | undefined,
): LoginSettings | undefined {
  const clientId = reader.optionalString("TOOLBUS_CONSOLE_CLIENT_ID", {
    meaning:
      "The console's client id at the issuer of tokens, where people then log in to it (OpenID Connect, authorization code with PKCE). The client is public; its redirect URI is the gateway's own address, with `/` at the end.",
    whenUnset: "the console asks for a key",
  });
  const scope = reader.string("TOOLBUS_CONSOLE_SCOPE", {
    meaning:
      "What a login to the console asks for. With `offline_access`, most issuers let it go on without another login.",
    default: "openid",
  });
  const further = reader.list("TOOLBUS_CONSOLE_LOGIN_ORIGINS", {
    meaning: "Origins of the issuer's endpoints, such as the one for tokens, where they are not the issuer's own.",
    default: [],
  });
  if (clientId === undefined) return undefined;
  if (tokens === undefined) {
    reader.fault("TOOLBUS_CONSOLE_CLIENT_ID", clientId, "TOOLBUS_JWT_ISSUER beside it, whose tokens the gateway takes");
    return undefined;
  }
  for (const origin of further) {
    if (!URL.canParse(origin) || new URL(origin).origin !== origin)
      reader.fault("TOOLBUS_CONSOLE_LOGIN_ORIGINS", origin, "origins, such as https://tokens.example");
  }
  const { issuer, audiences } = tokens;
  if (!URL.canParse(issuer)) {
    reader.fault("TOOLBUS_JWT_ISSUER", issuer, "a URL, as people log in there (TOOLBUS_CONSOLE_CLIENT_ID)");
    return undefined;
  }
  return { clientId, scope, issuer, audience: audiences[0] ?? "", origins: [new URL(issuer).origin, ...further] };
}
