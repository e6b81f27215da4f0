import type { ToolLog, ToolProgress } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { shortened } from "../content/shortened.ts";

/** What a tool tells while it runs. */
export type ToldByTool = { case: "progress"; value: ToolProgress } | { case: "log"; value: ToolLog };

/** Characters of a line of progress or log. It is for a person to read; what is large belongs into the result. */
export const MAX_TOLD_CHARACTERS = 16_384;

/** The event with a text that is not longer than that, and fields of a log that are not: half a JSON text is none. */
export function boundedEvent<E extends ToldByTool>(event: E): E {
  const { value } = event;
  value.message = shortened(value.message, MAX_TOLD_CHARACTERS);
  if (event.case !== "log" || event.value.fieldsJson.length <= MAX_TOLD_CHARACTERS) return event;
  event.value.fieldsJson = JSON.stringify({ omitted: `${event.value.fieldsJson.length} characters` });
  return event;
}
