/** Ten others, each on a connection of its own: they say results of calls that watchers have executed, until they are heard. */
import { randomUUID } from "node:crypto";
import { type Client, ConnectError } from "@connectrpc/connect";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { clientFor } from "../../../../services/clients.ts";
import { isPassing, retryRequest } from "../../retry-request.ts";
import { type Login, peers, type SubmitOrder, type SubmitterWord } from "../setting.ts";

type Calls = Client<typeof ToolCallService>;
type End = Extract<SubmitterWord, { kind: "submitted" }>["end"];

const login: Login = JSON.parse(process.argv[2] ?? "");
const patienceMs = 60_000;
const tell = (word: SubmitterWord) => void process.send?.(word);

/** A try whose answer was lost with a router is repeated under the same id, and told whether it had won. */
async function submit(calls: Calls, { callId, resultJson }: SubmitOrder): Promise<{ end: End; why: string }> {
  const outcome = { case: "resultJson", value: resultJson } as const;
  const submission = { callId, submissionId: randomUUID(), outcome };
  try {
    await retryRequest(() => calls.submitToolResult(submission), performance.now() + patienceMs);
    return { end: "won", why: "" };
  } catch (error) {
    const why = failureFromConnectError(error).reason ?? ConnectError.from(error).message;
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
