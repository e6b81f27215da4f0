import type { FunctionCall } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { errorTextOf } from "#runtime/results/error-result.ts";
import type { Numbered } from "./numbered.ts";
import { Pieces } from "./pieces.ts";
import type { OutputItem } from "./resource.ts";

/** A call that the client executes: with it, the response is over. */
export function tellClientCall(numbered: Numbered, { callId, name, argumentsJson }: FunctionCall, place: string): void {
  const id = `fc_${place}`;
  const itemOf = (status: string, given: string): OutputItem => ({
    ...{ type: "function_call", id, call_id: callId, name },
    ...{ arguments: given, status },
  });
  const index = numbered.add(itemOf("in_progress", ""));
  tellArguments(numbered, "response.function_call_arguments", { item_id: id, output_index: index }, argumentsJson);
  numbered.done(index, itemOf("completed", argumentsJson));
}

function tellArguments(numbered: Numbered, type: string, place: object, argumentsJson: string): void {
  for (const delta of new Pieces().of(argumentsJson, true)) numbered.tell(`${type}.delta`, { ...place, delta });
  numbered.tell(`${type}.done`, { ...place, arguments: argumentsJson });
}

/** A call of a tool of the agent, which the suite executes: told as that of an MCP server of the agent's name. */
export class AgentCall {
  readonly #numbered: Numbered;
  readonly #index: number;
  readonly #itemOf: (status: string, outcome: { output?: string; error?: object }) => OutputItem;
  readonly #place: object;

  constructor(numbered: Numbered, call: FunctionCall, { place, agent }: { place: string; agent: string }) {
    const id = `mcp_${place}`;
    const { name, argumentsJson } = call;
    this.#numbered = numbered;
    this.#itemOf = (status, outcome) => ({
      ...{ type: "mcp_call", id, server_label: agent, name, approval_request_id: null },
      ...{ arguments: status === "in_progress" ? "" : argumentsJson, status, output: null, error: null, ...outcome },
    });
    this.#index = numbered.add(this.#itemOf("in_progress", {}));
    this.#place = { item_id: id, output_index: this.#index };
    numbered.tell("response.mcp_call.in_progress", this.#place);
    tellArguments(numbered, "response.mcp_call_arguments", this.#place, argumentsJson);
  }

  /** Without a result: the run ended before there was one. */
  finish(result: ToolResult | undefined): void {
    const isDone = result !== undefined && !result.isError;
    const text = result === undefined ? "the run ended before it was answered" : errorTextOf(result.outputJson);
    const error = { type: "mcp_tool_execution_error", content: [{ type: "text", text }] };
    const item = isDone
      ? this.#itemOf("completed", { output: textOf(result.outputJson) })
      : this.#itemOf(result === undefined ? "incomplete" : "failed", { error });
    this.#numbered.tell(`response.mcp_call.${isDone ? "completed" : "failed"}`, this.#place);
    this.#numbered.done(this.#index, item);
  }
}

/** A text is told as it is, and all else as JSON. */
export function textOf(outputJson: string): string {
  const output: unknown = JSON.parse(outputJson || "null");
  return typeof output === "string" ? output : outputJson;
}
