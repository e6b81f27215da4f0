import { RunMode } from "#gen/toolbus/run/v1/run_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import { deliveryOf } from "#runtime/rpc/nats/call/delivery.ts";
import { withReferredItems } from "./references/referred-items.ts";
import type { CreateBody } from "./request/body.ts";
import { inputFrom } from "./request/input.ts";
import { metadataFrom, notesOf } from "./request/notes.ts";
import { modelSettingsFrom } from "./request/settings.ts";
import { type Options, toolOptionsFrom } from "./request/tools.ts";
import type { ResponsesExchange } from "./responses-exchange.ts";
import { type Asking, acceptedRun, isUnknownRun, runIdOf } from "./runs.ts";

export interface Starting {
  /** Sent again, it is the same run. */
  readonly idempotencyKey?: string;
  /** Told what failed the creation of the run, which it throws. */
  readonly onLost?: (error: unknown) => never;
  /** Responses that were not to be stored, and may be continued all the same: those of the same connection. */
  readonly own?: ReadonlySet<string>;
  /** In place of what the body says. */
  readonly options?: Options;
}

/**
 * Starts the run that a request over HTTP asks for. OpenAI's clients send a request again by themselves, which without a key would be
 * another run: once there may be one, they are told not to.
 */
export async function startAskedRun(exchange: ResponsesExchange, body: CreateBody): Promise<string> {
  const { request, response } = exchange;
  const idempotencyKey = String(request.headers["idempotency-key"] ?? "");
  const forbidRepeating = () => void (idempotencyKey === "" && response.setHeader("x-should-retry", "false"));
  const onLost = (error: unknown) => {
    const isUnknown = failureFromConnectError(error).reason === "OUTCOME_UNKNOWN" || deliveryOf(error) === "UNKNOWN";
    if (isUnknown) forbidRepeating(); // a gateway that stops gives up what it has sent, and has a reason of its own
    throw error;
  };
  const runId = await startRun(exchange, body, { idempotencyKey, onLost });
  forbidRepeating();
  response.setHeader("x-request-id", runId);
  return runId;
}

/** Starts the run of a response, and gives its id. */
export async function startRun(asking: Asking, body: CreateBody, starting: Starting): Promise<string> {
  const { parallel_tool_calls: parallel, max_tool_calls: maxToolCalls } = body;
  if (!/^[a-zA-Z0-9_-]{1,64}$/.test(body.model))
    refuseUnknownModel(`there is no agent ${JSON.stringify(body.model.slice(0, 64))}`);
  const before = await previousRun(asking, body, starting);
  const input = inputFrom({ ...body, input: await withReferredItems(asking, body.input, starting.own) });
  const system = joined(before?.system, input.system);
  const request = {
    ...(before && { sessionId: before.sessionId, previousRunId: before.runId }),
    agent: body.model,
    input: input.items,
    idempotencyKey: starting.idempotencyKey ?? "",
    options: {
      mode: RunMode.RETURN_CALLS,
      furtherInstructions: joined(system, body.instructions),
      metadata: metadataFrom(body, system),
      modelSettings: modelSettingsFrom(body),
      ...toolOptionsFrom(body),
      ...(typeof parallel === "boolean" && { parallelToolCalls: parallel }),
      ...(typeof maxToolCalls === "number" && { limits: { maxToolCalls } }),
      ...starting.options,
    },
  };
  const creating = asking.parts.runs.createRun(request, asking.options).catch(starting.onLost);
  const { run } = await creating.catch(refuseModel);
  return run?.id ?? refuse("internal", "the orchestrator accepted no run", { reason: "INTERNAL" });
}

function joined(...texts: readonly (string | null | undefined)[]): string {
  return texts.filter((text) => text).join("\n\n");
}

/** A response goes on in the session of the one before, from there, under the instructions that stood in its input. */
async function previousRun(asking: Asking, { previous_response_id: id }: CreateBody, { own }: Starting) {
  if (typeof id !== "string") return undefined;
  const { sessionId, options } = await acceptedRun(asking, runIdOf(id, PREVIOUS)).catch(refusePrevious(id));
  const notes = notesOf(options);
  if (notes.store === false && own?.has(id) !== true) notFound(id);
  return { runId: runIdOf(id), sessionId, system: notes.system ?? "" };
}

const PREVIOUS = "previous_response_id";

const refusePrevious = (id: string) => (error: unknown) =>
  isUnknownRun(error) || failureFromConnectError(error).reason === "RUN_NOT_FOUND"
    ? notFound(id, error)
    : Promise.reject(error);

function notFound(id: string, cause?: unknown): never {
  const message = `there is no response ${id.slice(0, 128)} to go on from: send all that was said`;
  return refuse("not_found", message, {
    ...{ reason: "RUN_NOT_FOUND" as const, cause },
    fieldViolations: [{ field: PREVIOUS, message }],
  });
}

/** The contract's word for the model is `agent`. */
function refuseModel(error: unknown): never {
  const { fieldViolations, reason } = failureFromConnectError(error);
  const fault = fieldViolations?.find(({ field }) => field === "agent");
  if (fault !== undefined) refuseField("model", fault.message, error);
  if (reason !== "AGENT_NOT_FOUND") throw error;
  return refuseUnknownModel(failureFromConnectError(error).message, error);
}

function refuseUnknownModel(message: string, cause?: unknown): never {
  const text = `model: ${message}; GET /v1/models lists those that you may use`;
  const fieldViolations = [{ field: "model", message: text }];
  return refuse("not_found", text, { reason: "AGENT_NOT_FOUND", fieldViolations, cause });
}
