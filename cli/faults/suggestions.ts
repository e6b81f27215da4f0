import { ConnectError } from "@connectrpc/connect";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { openConnection } from "../connection.ts";
import type { GlobalOptions } from "../global-options.ts";
import { meantBy } from "./meant.ts";

/** Which agent may have been meant by a name that none has, among those that whoever asks may see. */
export async function suggestAgent(error: unknown, options: GlobalOptions): Promise<string | undefined> {
  if (!(error instanceof ConnectError)) return undefined;
  const { reason, metadata } = failureFromConnectError(error);
  const wanted = metadata?.agent;
  if (reason !== "AGENT_NOT_FOUND" || wanted === undefined) return undefined;
  try {
    const { agents } = await openConnection(options).client(AgentService).listAgents({ pageSize: 1_000 });
    return meantBy(
      wanted,
      agents.flatMap(({ agent }) => agent?.name ?? []),
    );
  } catch {
    return undefined; // the fault itself is told all the same
  }
}
