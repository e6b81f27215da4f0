import { create } from "@bufbuild/protobuf";
import type { RunAccepted } from "#gen/toolbus/run/v1/run_event_pb.ts";
import {
  type WatchRunRequest,
  WatchRunRequestSchema,
  type WatchRunResponse,
} from "#gen/toolbus/run/v1/run_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { placeInRun, resumedWatch } from "../resumed-watches.ts";
import type { StreamEvent } from "./rendering/event-writer.ts";
import { type ResponseResource, responseIdOf } from "./rendering/resource.ts";
import { ResponseRenderer } from "./rendering/response-renderer.ts";
import { notesOf } from "./request/notes.ts";
import type { ResponsesExchange } from "./responses-exchange.ts";

/** On whose behalf runs are asked for. */
export type Asking = Pick<ResponsesExchange, "parts" | "options">;

/** The run of a response. Whoever names something else names no response. */
export function runIdOf(responseId: string, field = "response_id"): string {
  const [, runId] = /^resp_([a-zA-Z0-9_-]{1,64})$/.exec(responseId) ?? [];
  return runId ?? refuseUnknown(responseId, undefined, field);
}

export function refuseUnknown(responseId: string, cause: unknown, field = "response_id"): never {
  return refuse("not_found", `there is no response ${responseId.slice(0, 128)}`, {
    reason: "RUN_NOT_FOUND",
    fieldViolations: [{ field, message: "names no response" }],
    cause,
  });
}

/** Whether the services have no such run for the caller. Nobody is told of another's response that it is there. */
export function isUnknownRun(error: unknown): boolean {
  const { reason, metadata } = failureFromConnectError(error);
  return reason === "PRINCIPAL_NOT_OWNER" || (reason === "RUN_NOT_FOUND" && metadata?.run_id !== undefined);
}

/** The events of a response from its beginning to its end, live where it goes on. */
export async function* eventsOf(asking: Asking, runId: string, isOnSocket = false): AsyncGenerator<StreamEvent[]> {
  const renderer = new ResponseRenderer({ isOnSocket });
  for await (const update of watched(asking, runId, true)) yield renderer.take(update);
}

export async function endedResponse(asking: Asking, runId: string): Promise<ResponseResource> {
  const renderer = new ResponseRenderer();
  for await (const update of watched(asking, runId, false)) renderer.take(update);
  return renderer.response;
}

export async function currentResponse(asking: Asking, runId: string): Promise<ResponseResource> {
  const { run } = await asking.parts.runs.getRun({ runId }, asking.options);
  const renderer = new ResponseRenderer();
  for await (const update of watched(asking, runId, false)) {
    renderer.take(update);
    if (update.update.case === "event" && update.update.value.sequence >= (run?.lastSequence ?? 0)) break;
  }
  return renderer.response;
}

/** What a run was given. */
export async function acceptedRun(asking: Asking, runId: string): Promise<RunAccepted> {
  for await (const { update } of watched(asking, runId, false))
    if (update.case === "event" && update.value.event.case === "accepted") return update.value.event.value;
  return refuse("data_loss", "the beginning of the response is lost", { reason: "RECORD_LOST" });
}

/** What happens in a run from its beginning on, whichever orchestrator tells it. */
async function* watched(
  { parts, options }: Asking,
  runId: string,
  includeDeltas: boolean,
): AsyncGenerator<WatchRunResponse> {
  const place = placeInRun(create(WatchRunRequestSchema, { runId, fromSequence: 0n, includeDeltas }));
  const open = (request: WatchRunRequest) => parts.runs.watchRun(request, options);
  let isStored = false;
  try {
    for await (const message of resumedWatch({ place, open, signal: options.signal, stopping: parts.stopping })) {
      const { update } = message;
      if (update.case === "event" && update.value.event.case === "accepted")
        isStored = notesOf(update.value.event.value.options).store !== false;
      yield message;
    }
  } catch (error) {
    const { reason } = failureFromConnectError(error);
    if (reason !== "INSTANCE_STOPPING") throw error;
    const then = isStored
      ? `ask again, by GET /v1/responses/${responseIdOf(runId)}`
      : "the run goes on, and is not told again";
    refuse("unavailable", `this instance stops: ${then}`, { reason, cause: error });
  }
}
