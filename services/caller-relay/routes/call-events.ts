import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type ExecuteToolResponse,
  ExecuteToolResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createEventQueue } from "#runtime/collections/feeds/event-queue.ts";
import { providedResult } from "#runtime/results/provided-result.ts";
import type { TellCall } from "../requests/calls.ts";

/** How much progress may wait for a slow reader; the oldest gives way. */
const MOST_EVENTS = 100;

interface Numbered {
  readonly number: number;
  readonly response: ExecuteToolResponse;
}

/** What happens as it comes, then the result. What is told of the holding is told when the reader comes back for the next event. */
export async function* eventsOf(call: (tell: TellCall) => Promise<ToolResult>): AsyncGenerator<ExecuteToolResponse> {
  const queue = createEventQueue<Numbered>({ limit: MOST_EVENTS });
  const untold: { number: number; resolve: () => void }[] = [];
  let last = 0;
  const push = (event: NonNullable<MessageInitShape<typeof ExecuteToolResponseSchema>["event"]>) =>
    queue.push({ number: ++last, response: create(ExecuteToolResponseSchema, { event }) });
  const result = call((event) => {
    push(event);
    if (event.case !== "held") return undefined;
    return new Promise((resolve) => untold.push({ number: last, resolve }));
  });
  result.then(
    (value) => {
      push({ case: "result", value: providedResult(value) });
      queue.end();
    },
    (error: unknown) => queue.end(error),
  );
  for await (const { number, response } of queue) {
    yield response;
    while (untold[0] !== undefined && untold[0].number <= number) untold.shift()?.resolve();
  }
}
