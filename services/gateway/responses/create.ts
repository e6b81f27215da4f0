import type { MessageInitShape } from "@bufbuild/protobuf";
import { RunMode } from "#gen/toolbus/run/v1/run_pb.ts";
import type { CreateRunRequestSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import { answerJson } from "../plain/exchange.ts";
import type { ResponsesExchange } from "./exchange.ts";
import { answerEvents } from "./http/event-stream.ts";
import { readBody } from "./http/read-body.ts";
import { type CreateBody, parseBody } from "./request/body.ts";
import { inputFrom } from "./request/input.ts";
import { metadataFrom, notesOf } from "./request/notes.ts";
import { modelSettingsFrom } from "./request/settings.ts";
import { toolOptionsFrom } from "./request/tools.ts";
import { acceptedRun, currentResponse, endedResponse, eventsOf, runIdOf } from "./runs.ts";

/** Starts a run, and tells of it as it is asked for. A client that leaves has canceled nothing. */
export async function createResponse(exchange: ResponsesExchange): Promise<void> {
  const { parts, options, response } = exchange;
  const body = parseBody(await readBody(exchange));
  const { run } = await parts.runs.createRun(await requestFrom(exchange, body), options).catch(refuseModel);
  const runId = run?.id ?? refuse("internal", "the orchestrator accepted no run", { reason: "INTERNAL" });
  if (body.stream) await answerEvents(response, eventsOf(exchange, runId));
  else if (body.background) answerJson(response, 200, await currentResponse(exchange, runId));
  else answerJson(response, 200, await endedResponse(exchange, runId));
}

type RunRequest = MessageInitShape<typeof CreateRunRequestSchema>;

async function requestFrom(exchange: ResponsesExchange, body: CreateBody): Promise<RunRequest> {
  const { model: agent, instructions, parallel_tool_calls: parallel, max_tool_calls: maxToolCalls } = body;
  const before = await previousRun(exchange, body.previous_response_id);
  const input = inputFrom(body);
  const system = [before?.system ?? "", input.system].filter((text) => text !== "").join("\n\n");
  const furtherInstructions = [system, instructions ?? ""].filter((text) => text !== "").join("\n\n");
  return {
    ...(before && { sessionId: before.sessionId, previousRunId: before.runId }),
    agent,
    input: input.items,
    // sent again, it is the same run
    idempotencyKey: String(exchange.request.headers["idempotency-key"] ?? ""),
    options: {
      mode: RunMode.RETURN_CALLS,
      furtherInstructions,
      metadata: metadataFrom(body, system),
      modelSettings: modelSettingsFrom(body),
      ...toolOptionsFrom(body),
      ...(typeof parallel === "boolean" && { parallelToolCalls: parallel }),
      ...(typeof maxToolCalls === "number" && { limits: { maxToolCalls } }),
    },
  };
}

/** A response goes on in the session of the one before, from there, under the instructions that stood in its input. */
async function previousRun(exchange: ResponsesExchange, responseId: string | null | undefined) {
  if (typeof responseId !== "string") return undefined;
  const runId = runIdOf(responseId, "previous_response_id");
  const { sessionId, options } = await acceptedRun(exchange, runId);
  return { runId, sessionId, system: notesOf(options).system ?? "" };
}

/** The contract's word for the model is `agent`. */
function refuseModel(error: unknown): never {
  const { fieldViolations, reason } = failureFromConnectError(error);
  const fault = fieldViolations?.find(({ field }) => field === "agent");
  if (fault !== undefined) refuseField("model", fault.message, error);
  if (reason !== "AGENT_NOT_FOUND") throw error;
  const text = `model: ${failureFromConnectError(error).message}; GET /v1/models lists those that there are`;
  return refuse("not_found", text, { reason, fieldViolations: [{ field: "model", message: text }], cause: error });
}
