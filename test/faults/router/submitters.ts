/** Ten others, each on a connection of its own: they say results of calls that watchers have executed, until they are heard. */
import { type Client, ConnectError } from "@connectrpc/connect";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { clientFor } from "../../../services/clients.ts";
import { isPassing, persist } from "../persist.ts";
import { type Login, peers, type SubmitOrder, type SubmitterWord } from "./setting.ts";

type Calls = Client<typeof ToolCallService>;
type End = Extract<SubmitterWord, { kind: "submitted" }>["end"];

const login: Login = JSON.parse(process.argv[2] ?? "");
const patienceMs = 60_000;
const tell = (word: SubmitterWord) => void process.send?.(word);

async function submit(calls: Calls, { callId, resultJson }: SubmitOrder): Promise<{ end: End; why: string }> {
  let isUnknown = false;
  const attempt = async () => {
    try {
      await calls.submitToolResult({ callId, resultJson });
    } catch (error) {
      isUnknown ||= isPassing(error);
      throw error;
    }
  };
  const givesUpAtMs = performance.now() + patienceMs;
  try {
    await persist(attempt, givesUpAtMs);
    return { end: "won", why: "" };
  } catch (error) {
    const failure = failureFromConnectError(error);
    const why = failure.reason ?? ConnectError.from(error).message;
    if (!isUnknown) return { end: "refused", why };
    // an answer was lost with a router: what stands says whose it was
    const { call } = await persist(() => calls.getToolCall({ callId }), givesUpAtMs + patienceMs);
    if (call?.result?.outputJson === resultJson) return { end: "found", why };
    return { end: isPassing(error) ? "unknown" : "refused", why };
  }
}

const connections = Array.from({ length: peers }, async (_, index) => {
  const bus = await openBus({ ...login, name: `submitter-${index + 1}` });
  return clientFor(bus, ToolCallService);
});
const clients = await Promise.all(connections);

process.on("message", (order: SubmitOrder) => {
  const calls = clients[order.submitter];
  if (calls === undefined) return;
  const { callId, resultJson } = order;
  const submitter = `submitter-${order.submitter + 1}`;
  submit(calls, order)
    .catch((error: unknown) => ({ end: "unknown" as const, why: `${error}` }))
    .then(({ end, why }) => tell({ kind: "submitted", callId, submitter, resultJson, end, why, atMs: Date.now() }));
});
process.on("disconnect", () => process.exit());
tell({ kind: "ready" });
