import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type MemoryEntry, MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import type { Space, SpaceMessage } from "#gen/toolbus/space/v1/space_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";
import { wordOf } from "./tool-message.ts";

/** What a model reads of spaces and memory: only what it can use, in JSON. */
export function spaceForModel(space: Space) {
  return { id: space.id, title: space.title, members: space.members.map((member) => member.name) };
}

export function messageForModel(message: SpaceMessage) {
  const { author, createTime: time, content } = message;
  const head = { author: author?.name ?? "", ...(time && { time: timestampDate(time).toISOString() }) };
  if (content.case === "text") return { ...head, text: textOfContent(content.value.content) };
  if (content.case !== "tool") return head;
  const { tool, state: status, argumentsJson, result } = content.value;
  return {
    ...head,
    tool,
    status: wordOf(status),
    arguments: valueFromJson(argumentsJson),
    ...(result && { result: valueFromJson(result.outputJson) }),
  };
}

export function planForModel({ key, text, dueTime: dueAt, wakeTime: wokeAt }: MemoryEntry) {
  return {
    ...{ key, text },
    ...(dueAt && { at: timestampDate(dueAt).toISOString() }),
    ...(wokeAt && { woke_at: timestampDate(wokeAt).toISOString() }),
  };
}

export function pluralOf(kind: MemoryKind): "goals" | "memories" | "plans" {
  if (kind === MemoryKind.GOAL) return "goals";
  return kind === MemoryKind.MEMORY ? "memories" : "plans";
}

/** Text that is no JSON, such as a part of some, is shown as the text that it is. */
function valueFromJson(text: string): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return text; // as the comment above says
  }
}
