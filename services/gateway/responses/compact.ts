import { RunMode, ToolChoiceMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { answerJson, readJson } from "../plain/exchange.ts";
import { type CreateBody, parseBody } from "./request/body.ts";
import { sealedSummary } from "./request/compaction.ts";
import type { ResponsesExchange } from "./responses-exchange.ts";
import { endedResponse } from "./runs.ts";
import { startRun } from "./start-run.ts";

const INSTRUCTIONS =
  "Summarize the conversation for whoever goes on with it: goals, decisions, facts, results of tools, open tasks. Answer with the summary alone.";

/** Has the agent's model summarize a conversation: what it answers stands for the conversation in the input of a response. */
export async function compactConversation(exchange: ResponsesExchange): Promise<void> {
  const body = parseBody(await readJson(exchange, exchange.parts.maxBytes));
  const runId = await startRun(exchange, asking(body), {
    options: {
      mode: RunMode.SINGLE_TURN,
      toolChoice: { choice: { case: "mode", value: ToolChoiceMode.NONE } },
      instructions: [INSTRUCTIONS, body.instructions].filter((text) => text).join("\n\n"),
    },
  });
  exchange.response.setHeader("x-request-id", runId);
  const { status, created_at, usage, output } = await endedResponse(exchange, runId);
  const summary = output.flatMap((item) => (item.type === "message" ? textsOf(item.content) : [])).join("\n");
  const fault = `the conversation could not be summarized: its response is ${status}`;
  if (status === "failed") refuse("unavailable", fault, { reason: "SERVICE_UNAVAILABLE" });
  if (status !== "completed" || summary === "") refuse("failed_precondition", fault, { reason: "RUN_ENDED" });
  const item = { type: "compaction", id: `cmp_${runId}`, encrypted_content: sealedSummary(summary) };
  const compaction = { id: `resp_${runId}`, object: "response.compaction", created_at, output: [item], usage };
  answerJson(exchange.response, 200, compaction);
}

/** Models answer what a user says. */
function asking(body: CreateBody): CreateBody {
  const { input, previous_response_id, model } = body;
  const said = typeof input === "string" ? [{ role: "user", content: input }] : (input ?? []);
  return { model, previous_response_id, input: [...said, { role: "user", content: INSTRUCTIONS }] };
}

function textsOf(content: unknown): string[] {
  return (content as { text?: string }[]).flatMap(({ text }) => text ?? []);
}
