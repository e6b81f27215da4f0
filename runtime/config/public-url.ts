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
