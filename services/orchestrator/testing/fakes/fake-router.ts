/**
 * A router for tests that keeps the contract: a call id is executed once, whoever repeats it joins the first execution or
 * gets its result; a tool's failure is a result.
 */

import { create, isMessage, type MessageInitShape } from "@bufbuild/protobuf";
import type { RunContext } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import { type ProvidedResult, ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { CancelToolCallResponseSchema } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { ToolSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import {
  type CallToolRequest,
  CallToolRequestSchema,
  type CallToolResponse,
  CallToolResponseSchema,
  ListToolsResponseSchema,
} from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { decodeRunContext } from "#runtime/rpc/run-context.ts";
import type { ToolRouter } from "../../loop/tools/tool-router.ts";

/** A request, with what its run leaves to it. */
export type SeenCall = CallToolRequest & Pick<RunContext, "bounds" | "recovering">;

export interface FakeTool {
  readonly name: string;
  readonly reference?: string;
  readonly aliases?: string[];
  /** Further properties of the tool as the router lists it. */
  readonly tool?: MessageInitShape<typeof ToolSchema>;
  /** What it answers, as a result or as its value; an error thrown is a tool's failure. */
  readonly answer: (args: unknown, signal: AbortSignal, request: SeenCall) => unknown;
}

export interface FakeRouter extends ToolRouter {
  /** The agent of all sessions; calls that were decided before it was switched are refused. */
  agent: string;
  /** Every request, also those that joined. */
  readonly requests: SeenCall[];
  /** The names of the tools that were executed, in order. */
  readonly executed: string[];
  readonly aborted: string[];
  /** The ids of the calls that were canceled, begun or not. */
  readonly canceled: string[];
  /** The ids of the calls whose answers were read to the end. */
  readonly readToEnd: string[];
  /** How many calls are in execution. */
  readonly running: number;
  readonly mostRunning: number;
}

const canceledResult = { outputJson: '{"error":"the call was canceled"}', isError: true };

export function createFakeRouter(tools: FakeTool[]): FakeRouter {
  const execution = createExecution(tools);
  const requests: SeenCall[] = [];
  const aborted: string[] = [];
  const canceled: string[] = [];
  const readToEnd: string[] = [];
  let agent = "helper";
  let contextRevision = 1;

  async function* callTool(
    init: MessageInitShape<typeof CallToolRequestSchema>,
    { signal }: { signal: AbortSignal },
  ): AsyncGenerator<CallToolResponse> {
    const asked = create(CallToolRequestSchema, init);
    const { bounds, recovering } = decodeRunContext(asked.runContext);
    const request: SeenCall = { ...asked, bounds, recovering };
    const { callId } = request;
    requests.push(request);
    if (request.contextRevision < contextRevision)
      refuse("failed_precondition", "switched", { reason: "AGENT_SWITCHED" });
    signal.addEventListener("abort", () => aborted.push(callId), { once: true });
    if (canceled.includes(callId)) {
      yield create(CallToolResponseSchema, { event: { case: "result", value: canceledResult }, callId });
      return;
    }
    const result = execution.resultOf(request, signal);
    const { promise, reject } = Promise.withResolvers<never>();
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    yield create(CallToolResponseSchema, { event: { case: "progress", value: { progress: 1, total: 2 } } });
    const { outputJson, isError, usage, callCount, endsRun } = await Promise.race([result, promise]);
    const value = { outputJson, isError, callCount, endsRun, ...(usage && { usage }) };
    yield create(CallToolResponseSchema, { event: { case: "result", value }, callId });
    readToEnd.push(callId);
  }

  return {
    get agent() {
      return agent;
    },
    set agent(next) {
      agent = next;
      contextRevision += 1;
    },
    requests,
    executed: execution.executed,
    aborted,
    canceled,
    readToEnd,
    get running() {
      return execution.running;
    },
    get mostRunning() {
      return execution.mostRunning;
    },
    listTools: async () => create(ListToolsResponseSchema, { tools: tools.map(listedFrom), agent, contextRevision }),
    agentOf: async () => agent,
    async cancelToolCall({ callId = "" }) {
      canceled.push(callId);
      return create(CancelToolCallResponseSchema);
    },
    callTool,
  };
}

function listedFrom({ name, reference = name, aliases = [], tool }: FakeTool) {
  return { modelName: name, reference, aliases, callable: true, available: true, tool: { ...tool, name } };
}

/** Each call once, however often it is asked for. */
function createExecution(tools: FakeTool[]) {
  const resultsByCallId = new Map<string, Promise<ProvidedResult>>();
  const executed: string[] = [];
  let running = 0;
  let mostRunning = 0;

  async function execute(request: SeenCall, signal: AbortSignal): Promise<ProvidedResult> {
    const tool = tools.find(({ name, reference, aliases = [] }) =>
      [name, reference, ...aliases].includes(request.name),
    );
    executed.push(request.name);
    running += 1;
    mostRunning = Math.max(mostRunning, running);
    try {
      if (tool === undefined) throw new Error(`there is no tool ${JSON.stringify(request.name)}`);
      const value = await tool.answer(JSON.parse(request.argumentsJson), signal, request);
      if (isMessage(value, ProvidedResultSchema)) return value;
      return create(ProvidedResultSchema, { outputJson: JSON.stringify(value ?? null) });
    } catch (error) {
      return create(ProvidedResultSchema, { outputJson: JSON.stringify({ error: String(error) }), isError: true });
    } finally {
      running -= 1;
    }
  }

  return {
    executed,
    get running() {
      return running;
    },
    get mostRunning() {
      return mostRunning;
    },
    resultOf(request: SeenCall, signal: AbortSignal): Promise<ProvidedResult> {
      const result = resultsByCallId.get(request.callId) ?? execute(request, signal);
      resultsByCallId.set(request.callId, result);
      return result;
    },
  };
}
