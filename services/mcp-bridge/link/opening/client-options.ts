import type { McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { LONGEST_WAIT_MS } from "#runtime/time/timer.ts";
import { TASKS_EXTENSION } from "../tasks/tasks.ts";

/** The SDK's own timeout is out of the way: the signal is the deadline. */
export const NO_TIMEOUT_MS = LONGEST_WAIT_MS;

/** What needs nobody. */
const OWN_CAPABILITIES = { extensions: { [TASKS_EXTENSION]: {} } };

export const capabilitiesOf = ({ roots, sampling }: McpServer) => ({
  ...OWN_CAPABILITIES,
  ...(sampling && { sampling: {} }),
  ...(roots.length > 0 && { roots: {} }), // a connection's never change: other roots are another connection
});

export const requestOptions = (signal: AbortSignal) => ({ signal, timeout: NO_TIMEOUT_MS });
