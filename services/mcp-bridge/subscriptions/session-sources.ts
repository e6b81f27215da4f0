import type { Interceptor } from "@connectrpc/connect";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { askOnOwnBehalf, clientFor } from "../../clients.ts";
import { refuseUnavailable } from "../link/phase/phase.ts";
import type { SessionSources } from "../provider/session-sources.ts";
import { READ_RESOURCE } from "../tools/read-resource.ts";

const timeoutMs = 30_000;
/** A server that is starting is waited for so long; whoever asks again later finds it started. */
const LONGEST_START_MS = 20_000;
/** The name of this provider in the catalogue. */
const PROVIDER = "mcp";

/** Asks the router what a source is in a session, and whether the session's agent may use it, on behalf of this service. */
export function createSessionSources(bus: Bus, interceptors: Interceptor[]): SessionSources {
  const options = { interceptors, defaultTimeoutMs: timeoutMs };
  const sessions = clientFor(bus, SessionService, options);
  const agents = clientFor(bus, AgentService, options);
  const tools = clientFor(bus, ToolService, options);

  async function read(sessionId: string, name: string, signal: AbortSignal) {
    const { session } = await sessions.getSession({ sessionId }, { signal });
    const { agent: agentName = "", principal = "", contextRevision = 0 } = session ?? {};
    const { agent } = await agents.getAgent({ name: agentName }, { signal });
    const declared = agent?.agent?.sources.find((source) => source.name === name);
    const isOther = declared !== undefined && declared.provider !== PROVIDER;
    if (isOther) refuseUse(name, agentName, "it is no MCP server");
    return {
      scope: { sessionId, agent: agentName, principal, contextRevision },
      source: { name, ...(declared?.config && { config: declared.config }) },
    };
  }

  /** What the agent may call of a server is known once that has started. */
  async function requireUse(sessionId: string, name: string, signal: AbortSignal) {
    const scope = { case: "session" as const, value: { sessionId } };
    const untilMs = performance.now() + LONGEST_START_MS;
    for (;;) {
      const pages = await allPages((pageToken) => tools.listTools({ scope, pageToken }, { signal }));
      const { agent, sources } = pages[0];
      const own = pages.flatMap((page) => page.tools).filter(({ reference }) => reference.startsWith(`@${name}/`));
      if (own.some(({ callable }) => callable)) return;
      const status = sources.find(({ source }) => source === name);
      if (status?.starting && performance.now() < untilMs) continue; // the list has waited for it, for moments
      if (status?.available === false && own.length === 0) refuseUnavailable(name, status.reason);
      refuseUse(name, agent, "it may call none of its tools");
    }
  }

  async function requireReading(sessionId: string, name: string, signal: AbortSignal) {
    const scope = { case: "session" as const, value: { sessionId } };
    const reading = { scope, name: `@${name}/${READ_RESOURCE.name}` };
    const { reference, callable, rule, agent } = await tools.explainTool(reading, { signal });
    if (reference === "")
      await requireUse(sessionId, name, signal); // its entry omits the tool
    else if (!callable) refuseUse(name, agent, `${reference}: ${rule}`);
  }

  return {
    find: (sessionId, name, purpose, signal) =>
      askOnOwnBehalf(async () => {
        const [found] = await Promise.all([
          read(sessionId, name, signal),
          purpose === "read" ? requireReading(sessionId, name, signal) : requireUse(sessionId, name, signal),
        ]);
        return found;
      }),
  };
}

function refuseUse(source: string, agent: string, why: string): never {
  return refuse("permission_denied", `the agent ${agent} may not use the source ${source}: ${why}`, {
    reason: "TOOL_NOT_ALLOWED",
    metadata: { source },
  });
}
