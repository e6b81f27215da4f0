import { ToolCallService, type WatchToolCallsResponse } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { type Connection, randomName } from "./connection.ts";
import { errorOf } from "./error.ts";
import { type KeptStream, keepStream } from "./kept-stream.ts";
import { answerCall, answerUnlessOver, outcomeOf, type Tool } from "./tool.ts";

export interface WatchOptions {
  /** External tools of the catalogue by their names; their descriptions and schemas stand there. */
  readonly tools: Readonly<Record<string, Tool["run"]>>;
  /** How many calls are taken at once; 64 unless given. */
  readonly maxInFlight?: number | undefined;
  /** Told why calls of a tool do not come, such as that there is none of that name. */
  readonly onNotice?: ((problem: string) => void) | undefined;
}

/** Executes calls of external tools until it is closed. Of all programs that watch a tool each call goes to one. */
export function watchTools(connection: Connection, options: WatchOptions): Promise<KeptStream> {
  const { tools, maxInFlight = 0, onNotice = (problem) => console.warn(problem) } = options;
  const calls = connection.client(ToolCallService);
  const running = new Map<string, AbortController>();
  const watcherId = randomName();

  /** The acknowledgement makes the call this program's own; refused, it is somebody else's. */
  async function execute({ callId, deliveryId }: { callId: string; deliveryId: string }): Promise<void> {
    const withdrawing = new AbortController();
    running.set(callId, withdrawing);
    const { signal } = withdrawing;
    try {
      await answerUnlessOver(async () => {
        const { call } = await connection.repeat(() => calls.acknowledgeToolCall({ callId, deliveryId }), signal);
        const { tool = "", argumentsJson = "" } = call ?? {};
        const outcome = await outcomeOf(tools[tool], argumentsJson, { callId, signal });
        await answerCall(outcome, (answer) =>
          connection.repeat(() => calls.submitToolResult({ callId, ...answer }), signal),
        );
      });
    } catch (error) {
      if (!signal.aborted) onNotice(`call ${callId}: ${errorOf(error).message}`);
    } finally {
      running.delete(callId);
    }
  }

  return keepStream<WatchToolCallsResponse>({
    open: (signal) => calls.watchToolCalls({ tools: Object.keys(tools), watcherId, maxInFlight }, { signal }),
    take({ update }) {
      if (update.case === "notice") onNotice([update.value.problem, ...update.value.closestNames].join(" · "));
      else if (update.case === "withdrawn") running.get(update.value.call?.callId ?? "")?.abort();
      else if (update.case === "call") {
        const { deliveryId, call } = update.value;
        if (call && !running.has(call.callId)) void execute({ callId: call.callId, deliveryId });
      }
    },
  });
}
