import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { ExecuteToolRequestSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { type ServerMethod, toolOfMethod } from "../tools/server-method.ts";
import type { Provider } from "./provider.ts";
import type { SessionSources } from "./session-sources.ts";

export interface AskedMethod {
  readonly sessionId: string;
  readonly source: string;
  readonly method: ServerMethod;
  readonly params?: Record<string, unknown>;
}

export type AskContent = ReturnType<typeof createAskContent>;

const TIME_MS = 60_000;

/** Asks for what the servers of a session's agent have beside tools, wherever their connections are. */
export function createAskContent(sources: SessionSources, provider: Pick<Provider, "callTool">) {
  /** The server's answer; its error is `invalid_argument` where it says so of the parameters, and else `failed_precondition`. */
  return async ({ sessionId, source, method, params = {} }: AskedMethod, signal: AbortSignal) => {
    const purpose = method.startsWith("resources/") ? "read" : "use";
    const found = await sources.find(sessionId, source, purpose, signal);
    const call = create(ExecuteToolRequestSchema, {
      ...found,
      callId: randomUUID(),
      tool: toolOfMethod(method),
      argumentsJson: JSON.stringify(params),
      deadline: timestampFromMs(Date.now() + TIME_MS),
    });
    for await (const { event } of provider.callTool(call, { signal, isPeer: false })) {
      if (event.case !== "result") continue;
      const answer: unknown = JSON.parse(event.value.outputJson);
      if (isObject(answer) && !event.value.isError) return answer;
      const told = isObject(answer) && typeof answer.error === "string" ? answer.error : "its answer is no object";
      const text = `${source} refuses ${method}: ${told}`;
      if (event.value.reason === Reason.INVALID_REQUEST)
        refuse("invalid_argument", text, { reason: "INVALID_REQUEST" });
      return refuse("failed_precondition", text, { reason: "MCP_REQUEST_REFUSED", metadata: { source } });
    }
    return refuse("data_loss", `${method} of ${source} ended without an answer`, { reason: "OUTCOME_UNKNOWN" });
  };
}
