import type { SpaceEvent, SpaceMessage } from "#gen/toolbus/space/v1/space_pb.ts";
import { textOfContent } from "#runtime/content/text.ts";
import { colors, oneLine } from "./print.ts";

/** One line for one event of a space. */
export function textOfSpaceEvent({ event }: SpaceEvent): string {
  switch (event.case) {
    case "messagePosted":
      return textOfMessage(event.value);
    case "toolStarted":
      return `${colors.cyan("tool.started")} ${textOfMessage(event.value)}`;
    case "toolStreaming":
      return `${colors.dim("tool.streaming")} ${textOfMessage(event.value)}`;
    case "toolRequiresAction":
      return `${colors.yellow("waits for an answer")} ${textOfMessage(event.value)}`;
    case "toolDone":
      return `${colors.green("tool.done")} ${textOfMessage(event.value)}`;
    case "toolError":
      return `${colors.red("tool.error")} ${textOfMessage(event.value)}`;
    case "memberJoined":
      return colors.dim(`${event.value.name} joined`);
    case "memberLeft":
      return colors.dim(`${event.value.name} left`);
    case undefined:
      return "";
  }
}

/** One line for one message; more lines of its text stand apart from the next message. */
export function textOfMessage({ author, content }: SpaceMessage): string {
  const name = author?.name ?? "";
  if (content.case === "text") return `${name}: ${indented(textOfContent(content.value.content))}`;
  if (content.case !== "tool") return name;
  const { tool, callId, argumentsJson, result } = content.value;
  const answer = result === undefined ? "" : ` → ${oneLine(result.outputJson)}`;
  return `${name} ${tool}(${oneLine(argumentsJson)})${answer} ${colors.dim(callId)}`;
}

/** What a member writes on lines of its own cannot look like the words of another. */
function indented(text: string): string {
  return text.replaceAll("\n", "\n    ");
}
