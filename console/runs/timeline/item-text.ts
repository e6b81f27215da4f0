import { type Item, Role } from "#gen/toolbus/run/v1/run_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { textOf } from "../../parts/words.ts";

export function resultText(result: ToolResult | undefined): string {
  if (!result) return "";
  const blocks = result.content.map(({ blockJson }) => blockJson).filter((text) => text !== "");
  return [result.outputJson, ...blocks].filter((text) => text !== "").join("\n") || result.storedReference;
}

/** What a person or program said last. */
export function askedTextOf(input: readonly Item[]): string {
  const said = input.findLast(({ item }) => item.case === "message" && item.value.role === Role.USER);
  return said ? itemText(said.item) : "";
}

/** What was said, in words: a line for who says it, then what. */
export function itemsText(items: readonly { readonly item: Item["item"] | InputCase }[]): string {
  return items.map(({ item }) => itemText(item)).join("\n\n");
}

type InputCase = { case: undefined; value?: undefined };

function itemText(item: Item["item"] | InputCase): string {
  switch (item.case) {
    case "message":
      return textOf(item.value.content);
    case "functionCall":
      return `→ ${item.value.name} ${item.value.argumentsJson}`;
    case "functionCallOutput":
      return `← ${resultText(item.value.result)}`;
    case "reasoning":
      return `(thinks) ${item.value.text}`;
    default:
      return "";
  }
}
