import type { RunAccepted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import type { FunctionCall } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { errorTextOf } from "#runtime/results/error-result.ts";
import type { Notes } from "../request/notes.ts";
import { nameWithin } from "../request/tools.ts";
import type { EventWriter } from "./event-writer.ts";
import { Pieces } from "./pieces/pieces.ts";
import type { OutputItem } from "./resource.ts";

/** A call that the client executes: with it, the response is over. */
export function renderClientCall(
  writer: EventWriter,
  { callId, name, argumentsJson }: FunctionCall,
  { place, namespaces }: { place: string; namespaces: Notes["namespaces"] },
): void {
  const id = `fc_${place}`;
  const namespace = new Map(Object.entries(namespaces ?? {})).get(name);
  const named = namespace === undefined ? { name } : { name: name.slice(nameWithin(namespace, "").length), namespace };
  const itemOf = (status: string, given: string): OutputItem => ({
    ...{ type: "function_call", id, call_id: callId, ...named },
    ...{ arguments: given, status },
  });
  const index = writer.add(itemOf("in_progress", ""));
  renderArguments(writer, "response.function_call_arguments", { item_id: id, output_index: index }, argumentsJson);
  writer.done(index, itemOf("completed", argumentsJson));
}

function renderArguments(writer: EventWriter, type: string, place: object, argumentsJson: string): void {
  for (const delta of new Pieces().of(argumentsJson, true)) writer.emit(`${type}.delta`, { ...place, delta });
  writer.emit(`${type}.done`, { ...place, arguments: argumentsJson });
}

/** Ends a name that the suite made of one that models do not take, or that could be read in two ways: the server's cannot be told from it. */
const HASHED = /__[0-9a-f]{16}$/;

/** A call that the suite executes: of an MCP server of the request, or of the agent's tools, shown as those of one with its name. */
export class AgentCall {
  readonly #writer: EventWriter;
  readonly #index: number;
  readonly #itemOf: (status: string, outcome: { output?: string; error?: object }) => OutputItem;
  readonly #place: object;

  constructor(writer: EventWriter, call: FunctionCall, { place, accepted }: { place: string; accepted: RunAccepted }) {
    const id = `mcp_${place}`;
    const { argumentsJson } = call;
    const servers = HASHED.test(call.name) ? [] : (accepted.options?.mcpServers ?? []);
    const server = servers.find(({ name }) => call.name.startsWith(nameWithin(name, "")))?.name;
    const named = { server_label: server ?? accepted.agent, name: call.name.slice(nameWithin(server, "").length) };
    this.#writer = writer;
    this.#itemOf = (status, outcome) => ({
      ...{ type: "mcp_call", id, ...named, approval_request_id: null },
      ...{ arguments: status === "in_progress" ? "" : argumentsJson, status, output: null, error: null, ...outcome },
    });
    this.#index = writer.add(this.#itemOf("in_progress", {}));
    this.#place = { item_id: id, output_index: this.#index };
    writer.emit("response.mcp_call.in_progress", this.#place);
    renderArguments(writer, "response.mcp_call_arguments", this.#place, argumentsJson);
  }

  /** Without a result: the run ended before there was one. */
  finish(result: ToolResult | undefined): void {
    const isDone = result !== undefined && !result.isError;
    const text = result === undefined ? "the run ended before it was answered" : errorTextOf(result.outputJson);
    const error = { type: "mcp_tool_execution_error", content: [{ type: "text", text }] };
    const item = isDone
      ? this.#itemOf("completed", { output: textOf(result.outputJson) })
      : this.#itemOf(result === undefined ? "incomplete" : "failed", { error });
    this.#writer.emit(`response.mcp_call.${isDone ? "completed" : "failed"}`, this.#place);
    this.#writer.done(this.#index, item);
  }
}

/** A text stands as it is, and all else as JSON. */
export function textOf(outputJson: string): string {
  const output: unknown = JSON.parse(outputJson || "null");
  return typeof output === "string" ? output : outputJson;
}
