import { openSuite, type Suite } from "../../cli/suite/suite.ts";

/** Where the package takes the suite's Client ID Metadata Document to be. */
const PUBLIC_URL = "https://conformance-test.local";

/** The services that a call of an MCP tool needs, with these secrets beside their settings. */
export function openConformanceSuite(directory: string, secrets: NodeJS.ProcessEnv = {}): Promise<Suite> {
  return openSuite({
    ...{ directory, port: 0, restart: false },
    services: ["gateway", "tool-router", "mcp-bridge", "spaces"],
    env: { TOOLBUS_PUBLIC_URL: PUBLIC_URL, ...secrets },
  });
}
