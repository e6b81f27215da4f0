import { createHash } from "node:crypto";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { RunService } from "#gen/toolbus/orchestrator/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/router/v1/sessions_pb.ts";
import { ToolRouterService } from "#gen/toolbus/router/v1/tool_router_pb.ts";
import { Role, RunMode, RunStatus } from "#gen/toolbus/run/v1/run_pb.ts";
import type { Scope } from "#gen/toolbus/tool/v1/provider_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { clientFor } from "#runtime/rpc/client.ts";
import { LOCAL_PRINCIPAL, withPrincipal } from "#runtime/rpc/identity.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import type { AskingCall, Host } from "../hosted/host.ts";
import type { Ask } from "../hosted/messages.ts";
import type { Answer } from "../worker/worker.ts";

/**
 * The agent's tools by way of the router, under the agent's policy, and models by way of runs: of one turn, without tools, in a
 * session of their own that is closed afterwards. All of it on behalf of the principal whose session called.
 */
export function createHost(bus: Bus, telemetry: Pick<Telemetry, "clientTracing">): Host {
  const interceptors = clientInterceptors({ telemetry });
  const router = clientFor(bus, ToolRouterService, { interceptors });
  const runs = clientFor(bus, RunService, { interceptors });
  const sessions = clientFor(bus, SessionService, { interceptors });

  async function listTools({ sessionId }: Scope, signal: AbortSignal): Promise<Answer> {
    const { tools } = await router.listTools({ sessionId }, { signal });
    const told = tools.map(({ modelName, reference, tool, callable }) => ({
      name: modelName,
      reference,
      description: tool?.description ?? "",
      inputSchema: JSON.parse(tool?.inputSchemaJson || "{}"),
      callable,
    }));
    return { kind: "result", resultJson: JSON.stringify(told) };
  }

  async function callTool(ask: Extract<Ask, { kind: "call tool" }>, id: string, scope: Scope, call: AskingCall) {
    const { sessionId, runId, agentRevision } = scope;
    const deadline = timestampFromMs(call.deadlineMs);
    const { name, argumentsJson } = ask;
    const request = { callId: id, sessionId, runId, agentRevision, name, argumentsJson, deadline };
    for await (const { event } of router.callTool(request, { signal: call.signal })) {
      if (event.case !== "result") continue;
      const { outputJson, isError } = event.value;
      return isError ? errorAnswer(outputJson) : resultAnswer(outputJson);
    }
    return refuse("data_loss", `the call of ${name} ended without a result`);
  }

  async function generate(ask: Extract<Ask, { kind: "generate" }>, id: string, scope: Scope, signal: AbortSignal) {
    const message = { role: Role.USER, text: ask.prompt };
    const { run } = await runs.createRun(
      {
        agent: ask.agent || scope.agent,
        input: [{ item: { case: "message", value: message } }],
        options: {
          mode: RunMode.SINGLE_TURN,
          toolChoice: { choice: { case: "mode", value: "none" } },
          instructions: ask.instructions,
        },
        idempotencyKey: id,
      },
      { signal },
    );
    const { id: runId = "", sessionId = "" } = run ?? {};
    try {
      for await (const { update } of runs.watchRun({ runId }, { signal }))
        if (update.case === "event" && update.value.event.case === "ended") break;
      const ended = (await runs.getRun({ runId }, { signal })).run;
      if (ended?.status === RunStatus.COMPLETED) return resultAnswer(JSON.stringify({ text: ended.outputText }));
      const reason = ended?.error || ended?.reason || "the run is gone";
      return { kind: "error" as const, error: `the model gave no answer: ${reason}` };
    } finally {
      if (signal.aborted) await runs.cancelRun({ runId, reason: "its caller has left" }).catch(() => {}); // it has ended
      await sessions.closeSession({ sessionId }).catch(() => {}); // an open session without a run costs its entry only
    }
  }

  async function answer(ask: Ask, id: string, call: AskingCall): Promise<Answer> {
    const { scope, signal } = call;
    if (!scope || scope.agent === "") refuse("failed_precondition", "the call comes from no agent");
    if (ask.kind === "generate") return generate(ask, id, scope, signal);
    if (scope.sessionId === "")
      refuse("failed_precondition", "the call comes from no session, whose tools could be used");
    return ask.kind === "list tools" ? listTools(scope, signal) : callTool(ask, id, scope, call);
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

function resultAnswer(resultJson: string): Answer {
  return { kind: "result", resultJson };
}

function errorAnswer(outputJson: string): Answer {
  const { error }: { error?: unknown } = JSON.parse(outputJson);
  return { kind: "error", error: typeof error === "string" ? error : outputJson };
}
