import { type Item, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";
import { textOf } from "./call-item.ts";
import type { OutputItem } from "./resource.ts";

/** What a run was given, as items; instructions stand first, as they stood in the request. */
export function inputItemsFrom(runId: string, system: string, input: readonly Item[]): OutputItem[] {
  const items = input.map((item, n) => itemFrom(item, `${runId}_in_${n}`));
  const opening = system === "" ? [] : [messageOf(`msg_${runId}_in`, "system", system)];
  return [...opening, ...items.flatMap((item) => item ?? [])];
}

function itemFrom({ item }: Item, place: string): OutputItem | undefined {
  if (item.case === "message") {
    const { role, content } = item.value;
    return messageOf(`msg_${place}`, role === Role.ASSISTANT ? "assistant" : "user", textOfContent(content));
  }
  if (item.case === "functionCall") {
    const { callId, name, argumentsJson } = item.value;
    const call = { type: "function_call", id: `fc_${place}`, call_id: callId, name };
    return { ...call, arguments: argumentsJson, status: "completed" };
  }
  if (item.case !== "functionCallOutput") return undefined;
  const { callId, result } = item.value;
  const output = textOf(result?.outputJson ?? "");
  return { type: "function_call_output", id: `fco_${place}`, call_id: callId, output, status: "completed" };
}

function messageOf(id: string, role: "assistant" | "system" | "user", text: string): OutputItem {
  const part = role === "assistant" ? { type: "output_text", text, annotations: [] } : { type: "input_text", text };
  return { type: "message", id, role, status: "completed", content: [part] };
}
