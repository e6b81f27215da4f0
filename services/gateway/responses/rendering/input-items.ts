import type { ContentPart } from "#gen/toolbus/content/v1/content_pb.ts";
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
    if (role === Role.ASSISTANT) return messageOf(`msg_${place}`, "assistant", textOfContent(content));
    return { ...messageOf(`msg_${place}`, "user", ""), content: content.flatMap(partFrom) };
  }
  if (item.case === "functionCall") {
    const { callId, name, argumentsJson } = item.value;
    const call = { type: "function_call", id: `fc_${place}`, call_id: callId, name };
    return { ...call, arguments: argumentsJson, status: "completed" };
  }
  if (item.case !== "functionCallOutput" || item.value.result === undefined) return undefined; // which an earlier response has
  const { callId, result } = item.value;
  const output = textOf(result.outputJson);
  return { type: "function_call_output", id: `fco_${place}`, call_id: callId, output, status: "completed" };
}

function partFrom({ part }: ContentPart): object[] {
  if (part.case === "text") return [{ type: "input_text", text: part.value }];
  if (part.case !== "file") return [];
  const { mediaType, filename, source } = part.value;
  const [url, data] = source.case === "url" ? [source.value] : [undefined, dataUrl(mediaType, source.value)];
  if (mediaType.startsWith("image/")) return [{ type: "input_image", image_url: url ?? data, detail: "auto" }];
  return [{ type: "input_file", filename, ...(url ? { file_url: url } : { file_data: data }) }];
}

function dataUrl(mediaType: string, bytes: Uint8Array = new Uint8Array()): string {
  return `data:${mediaType};base64,${Buffer.from(bytes).toString("base64")}`;
}

function messageOf(id: string, role: "assistant" | "system" | "user", text: string): OutputItem {
  const part = role === "assistant" ? { type: "output_text", text, annotations: [] } : { type: "input_text", text };
  return { type: "message", id, role, status: "completed", content: [part] };
}
