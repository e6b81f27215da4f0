import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { Scope } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { addUsage, shareOfCall } from "#runtime/money/run-share.ts";
import { errorTextOf } from "#runtime/results/error-result.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import type { Answer } from "../calls/answer.ts";
import type { Ask } from "../worker/frames.ts";
import type { AskingCall } from "../worker/host.ts";

/** The agent's tools by way of the router, under the agent's policy. */
export function createAgentTools(router: Client<typeof ToolService>) {
  return {
    async list({ sessionId }: Scope, signal: AbortSignal): Promise<Answer> {
      const pages = await allPages((pageToken) =>
        router.listTools({ scope: { case: "session", value: { sessionId } }, pageToken }, { signal }),
      );
      const tools = pages.flatMap((page) => page.tools);
      const told = tools.map(({ modelName, reference, tool, callable }) => ({
        name: modelName,
        reference,
        description: tool?.description ?? "",
        inputSchema: JSON.parse(tool?.inputSchemaJson || "{}"),
        callable,
      }));
      return { kind: "result", resultJson: JSON.stringify(told) };
    },

    async call(ask: Extract<Ask, { kind: "call tool" }>, id: string, scope: Scope, call: AskingCall): Promise<Answer> {
      const { sessionId, runId, contextRevision } = scope;
      const deadline = timestampFromMs(call.deadlineMs);
      const { name, argumentsJson } = ask;
      const { used } = call;
      used.calls += 1;
      const place = { callId: id, sessionId, runId, contextRevision, deadline };
      const request = { ...place, name, argumentsJson, ...shareOfCall(call, used) };
      for await (const { event } of router.callTool(request, { signal: call.signal })) {
        if (event.case !== "result") continue;
        const { outputJson, isError, usage, callCount: calls } = event.value;
        used.calls += calls;
        addUsage(used, usage);
        return isError ? { kind: "error", error: errorTextOf(outputJson) } : { kind: "result", resultJson: outputJson };
      }
      return refuse("data_loss", `the call of ${name} ended without a result`, { reason: "OUTCOME_UNKNOWN" });
    },
  };
}
