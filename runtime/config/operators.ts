import { LOCAL_PRINCIPAL } from "../rpc/identity.ts";
import type { EnvironmentReader } from "./environment.ts";

/** The principals that may do what reaches further than their own sessions; everybody of a gateway without keys is among them. */
export function operatorsFromReader(reader: EnvironmentReader): ReadonlySet<string> {
  return new Set([
    LOCAL_PRINCIPAL,
    ...reader.list("TOOLBUS_OPERATORS", {
      meaning:
        "Principals that may change agents, tools, providers and MCP servers, and read the whole audit trail. `local` is always one of them.",
      default: [],
    }),
  ]);
}
