import type { MessageInitShape } from "@bufbuild/protobuf";
import { CallerToolCancellationReason, type CallerToolRequest } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { CallerService, type ReportProgressRequestSchema } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { type ExecuteToolRequest, ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { instanceService } from "#runtime/bus/ownership/ownership.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { type Failure, refuse } from "#runtime/failure/failure.ts";
import { resultFromProvided } from "#runtime/results/provided-result.ts";
import type { Submission } from "#runtime/results/submission.ts";
import { deliveryOf, wasLost } from "#runtime/rpc/nats/call/delivery.ts";
import { timedBy } from "#runtime/time/duration.ts";
import { clientFor } from "../../clients.ts";
import type { CarriedBy } from "../delivery/sending.ts";
import type { Waiter } from "../requests/calls.ts";
import type { Carriage } from "../streams/attachments.ts";
import type { CallerStream, StreamState } from "../streams/stream-record.ts";

/** Names the attachment that a forwarded request is for; without it, a forwarded call joins one that is held there. */
export const attachmentHeader = "toolbus-attachment";

/** Says that the forwarded request is canceled, and why; nothing is carried. */
export const canceledHeader = "toolbus-canceled";

/** The instance that holds the call of a forwarded request. */
export const holderHeader = "toolbus-holder";

/** Reasons by which an instance tells another what became of a stream. */
export const peerReasons = {
  absent: "CALLER_NOT_ATTACHED",
  unknown: "CALL_NOT_FOUND",
  answered: "CALL_ALREADY_RESOLVED",
  replaced: "STREAM_REPLACED",
  gone: "STREAM_ENDED",
} as const;

const answerTimeoutMs = 10_000;

/** The other instances of this service, each called by its own name. */
export function createPeers(bus: Bus, service: string, holder: string) {
  const processOf = (instance: string) => instanceService(service, instance);
  const providerAt = (instance: string) => clientFor(bus, ToolProviderService, { process: processOf(instance) });
  const relayAt = (instance: string) =>
    clientFor(bus, CallerService, { process: processOf(instance), defaultTimeoutMs: answerTimeoutMs });

  return {
    async carry(stream: CallerStream, request: CallerToolRequest, { signal, mode }: CarriedBy): Promise<Carriage> {
      const headers = { [attachmentHeader]: stream.attachmentId, [holderHeader]: holder };
      try {
        const asked = { ...forwarded(request), resumed: mode === "adopt" };
        const events = providerAt(stream.instance).executeTool(asked, { signal, headers });
        for await (const _ of events); // nothing comes: it lasts as long as the caller's stream
        return { kind: "ended", end: "detached" };
      } catch (error) {
        signal.throwIfAborted();
        if (!bus.link.isUp) throw failureFromConnectError(error); // says nothing about the other instance
        const failure = failureFromConnectError(error);
        const isTold = failure.reason === peerReasons.gone;
        const mayBeThere = failure.code === "unavailable" && !isTold;
        if (mayBeThere && (await this.stateOf(stream, request.sessionId)) === "attached") throw failure;
        return deliveryOf(error) === "NOT_SENT" ? { kind: "absent" } : carriageFromFailure(failure);
      }
    },
    async cancel(
      { instance, attachmentId }: CallerStream,
      requestId: string,
      reason: CallerToolCancellationReason,
    ): Promise<void> {
      const headers = { [attachmentHeader]: attachmentId, [holderHeader]: holder, [canceledHeader]: String(reason) };
      const request = { callId: requestId, scope: {}, tool: "canceled" };
      const events = providerAt(instance).executeTool(request, { headers, timeoutMs: answerTimeoutMs });
      for await (const _ of events); // its end says that the caller's stream has it
    },
    async join(instance: string, request: ExecuteToolRequest, { signal, tell }: Waiter): Promise<ToolResult> {
      for await (const { event } of providerAt(instance).executeTool(
        { ...request, ...timedBy(request.deadline) },
        { signal },
      )) {
        if (event.case === "progress" || event.case === "held") void tell(event);
        if (event.case === "result") return resultFromProvided(event.value);
      }
      return refuse("unavailable", "the instance that holds the call ended it without a result", {
        reason: "OUTCOME_UNKNOWN",
      });
    },
    forward(instance: string, sessionId: string, requestId: string, submission: Submission): Promise<boolean> {
      return isKnownTo(relayAt(instance).respond({ sessionId, requestId, ...submission }));
    },
    /** False when the request does not wait there. */
    tellProgress(instance: string, request: MessageInitShape<typeof ReportProgressRequestSchema>): Promise<boolean> {
      return isKnownTo(relayAt(instance).reportProgress(request));
    },
    /** Has an answer kept by the instance whose stream carries the request; false when it carries none. */
    keep(stream: CallerStream, sessionId: string, requestId: string, submission: Submission): Promise<boolean> {
      const headers = { [attachmentHeader]: stream.attachmentId };
      return isKnownTo(relayAt(stream.instance).respond({ sessionId, requestId, ...submission }, { headers }));
    },
    /** Rejects while this instance is off the bus itself: then nothing is said of another one. */
    async stateOf({ instance, attachmentId }: CallerStream, sessionId: string): Promise<StreamState> {
      try {
        const headers = { [attachmentHeader]: attachmentId };
        const { attached } = await relayAt(instance).getDeclaration({ sessionId }, { headers });
        return attached ? "attached" : "lost";
      } catch (error) {
        const failure = failureFromConnectError(error);
        if (!bus.link.isUp || failure.code !== "unavailable") throw failure;
        return deliveryOf(error) === "NOT_SENT" ? "lost" : "silent";
      }
    },
  };
}

/** Whether the instance that was asked knows the request, and is there. */
async function isKnownTo(asked: Promise<unknown>): Promise<boolean> {
  try {
    await asked;
    return true;
  } catch (cause) {
    const failure = failureFromConnectError(cause);
    if (failure.code === "not_found" || (deliveryOf(cause) === "NOT_SENT" && !wasLost(cause))) return false;
    throw failure;
  }
}

export function reasonOfCancellation(why: unknown): CallerToolCancellationReason {
  const isDeadline = failureFromConnectError(why).code === "deadline_exceeded";
  return isDeadline ? CallerToolCancellationReason.DEADLINE : CallerToolCancellationReason.CANCELED;
}

function carriageFromFailure(failure: Failure): Carriage {
  if (failure.reason === peerReasons.absent) return { kind: "absent" };
  if (failure.reason === peerReasons.unknown) return { kind: "unknown" };
  if (failure.reason === peerReasons.answered) return { kind: "ended", end: "answered" };
  if (failure.reason === peerReasons.replaced) return { kind: "ended", end: "replaced" };
  if (failure.code === "unavailable") return { kind: "ended", end: "detached" }; // told so, or the instance died with the stream
  throw failure;
}

/** A request to the caller in the words of the provider contract; the tool's name stays without its prefix. */
function forwarded(request: CallerToolRequest) {
  return {
    callId: request.requestId,
    scope: { sessionId: request.sessionId },
    tool: request.tool,
    argumentsJson: request.argumentsJson,
    ...(request.expireTime && { deadline: request.expireTime }), // as the caller was told it; whoever forwards the call ends it
  };
}
