import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ExecuteToolResponse,
  ExecuteToolResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createEventQueue } from "#runtime/collections/event-queue.ts";
import { providedResult } from "#runtime/results/provided-result.ts";
import type { TellCall } from "../requests/calls.ts";

/** How much progress may wait for a slow reader; the oldest gives way. */
const MOST_EVENTS = 100;

/** What happens as it comes, then the result. */
export function eventsOf(call: (tell: TellCall) => Promise<ToolResult>): AsyncIterable<ExecuteToolResponse> {
  const queue = createEventQueue<ExecuteToolResponse>({ limit: MOST_EVENTS });
  const push = (event: NonNullable<MessageInitShape<typeof ExecuteToolResponseSchema>["event"]>) =>
    queue.push(create(ExecuteToolResponseSchema, { event }));
  const result = call(push);
  result.then(
    (value) => {
      push({ case: "result", value: providedResult(value) });
      queue.end();
    },
    (error: unknown) => queue.end(error),
  );
  return queue;
}
