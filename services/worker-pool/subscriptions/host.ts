import { createHash } from "node:crypto";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { AgentModels } from "#runtime/money/agent-models.ts";
import { LOCAL_PRINCIPAL, withPrincipal } from "#runtime/rpc/identity.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { clientFor } from "../../clients.ts";
import type { Answer } from "../calls/answer.ts";
import type { Ask } from "../worker/frames.ts";
import type { AskingCall, Host } from "../worker/host.ts";
import { createAgentTools } from "./agent-tools.ts";

/** The tools and models of the agent, on behalf of the principal whose session called. */
export function createHost(bus: Bus, telemetry: Pick<Telemetry, "clientTracing">): Host {
  const interceptors = clientInterceptors({ telemetry });
  const tools = createAgentTools(clientFor(bus, ToolService, { interceptors }));
  const sessions = clientFor(bus, SessionService, { interceptors });
  const models = new AgentModels(clientFor(bus, RunService, { interceptors }), sessions);

  async function answer(ask: Ask, id: string, call: AskingCall): Promise<Answer> {
    const { scope, signal } = call;
    if (!scope || scope.agent === "")
      refuse("failed_precondition", "the call comes from no agent", { reason: "SCOPE_MISSING" });
    if (ask.kind === "generate") {
      const { prompt, instructions, agent } = ask;
      const question = { messages: [{ role: Role.USER, text: prompt }], instructions, agent };
      const answered = await models.generate(question, id, scope, call);
      if (answered.kind === "error") return answered;
      return { kind: "result", resultJson: JSON.stringify({ text: answered.text }) };
    }
    if (scope.sessionId === "")
      refuse("failed_precondition", "the call comes from no session, whose tools could be used", {
        reason: "SCOPE_MISSING",
      });
    return ask.kind === "list tools" ? tools.list(scope, signal) : tools.call(ask, id, scope, call);
  }

  return {
    async answer(ask, id, call) {
      const principal = call.scope?.principal || LOCAL_PRINCIPAL;
      try {
        return await withPrincipal(principal, () => answer(ask, shortId(id), call));
      } catch (error) {
        throw failureFromConnectError(error);
      }
    },
  };
}

/** Call ids have at most 128 characters, and runs put more before them. */
function shortId(id: string): string {
  return id.length <= 100 ? id : `${id.slice(0, 60)}_${createHash("sha256").update(id).digest("hex").slice(0, 32)}`;
}
