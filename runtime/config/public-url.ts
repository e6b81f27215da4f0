import type { EnvironmentReader } from "./environment.ts";

/** Where browsers reach the gateway: what others send people back to. */
export function publicUrlFromReader(reader: EnvironmentReader): URL | undefined {
  const name = "TOOLBUS_PUBLIC_URL";
  const given = reader.optionalString(name, {
    meaning: "Where browsers reach the gateway, through a proxy or not: `https://toolbus.example`.",
    form: "URL",
    whenUnset:
      "logins at MCP servers come back to the machine of who logs in, and no document names the suite as a client",
  });
  if (given === undefined) return undefined;
  const url = URL.parse(given);
  if (url === null || !["https:", "http:"].includes(url.protocol) || url.search !== "" || url.hash !== "") {
    reader.fault(name, given, "an http or https URL without query and fragment");
    return undefined;
  }
  return url;
}

/** What the gateway serves for logins at MCP servers, below its public URL. */
export const LOGIN_PATH = "/oauth/login";
export const CALLBACK_PATH = "/oauth/callback";
export const CLIENT_PATH = "/client-metadata.json";

/** A path of the gateway, as browsers see it. */
export function urlBelow(publicUrl: URL, path: string): string {
  return `${publicUrl.href.replace(/\/$/, "")}${path}`;
}

/** What the suite says of itself as an OAuth client, as it registers and in its Client ID Metadata Document. */
export function clientDocument(redirectUris: string[]) {
  return {
    client_name: "toolbus",
    redirect_uris: redirectUris,
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    // Redirects to any port of loopback (RFC 8252, 7.3) are for native clients alone, and a client is a web one unless it says so.
    application_type: redirectUris.every((uri) => uri.startsWith("https:")) ? "web" : "native",
  };
}
