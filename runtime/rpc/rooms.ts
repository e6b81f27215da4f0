import { refuse } from "../failure/failure.ts";

/** The service on the bus that serves a package of the contract. */
const ROOM_BY_PACKAGE = new Map([
  ["toolbus.orchestrator.v1", "orchestrator"],
  ["toolbus.router.v1", "tool-router"],
  ["toolbus.mcp.v1", "mcp-bridge"],
  ["toolbus.relay.v1", "caller-relay"],
  ["toolbus.worker.v1", "worker-pool"],
  ["toolbus.spaces.v1", "spaces"],
]);

/**
 * Where calls to a proto service go. Throws `invalid_argument` for one that has no single home, such as
 * `toolbus.tool.v1.ToolProviderService`, which every provider serves: its caller names the room.
 */
export function roomOf(serviceTypeName: string): string {
  const packageName = serviceTypeName.slice(0, serviceTypeName.lastIndexOf("."));
  return (
    ROOM_BY_PACKAGE.get(packageName) ??
    refuse("invalid_argument", `${serviceTypeName} has no room of its own: name one`)
  );
}
