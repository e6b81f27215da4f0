import { create } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { CallerToolCancellationReason, CallerToolRequestSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { type ExecuteToolRequest, ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { providedResult } from "#runtime/results/provided-result.ts";
import { submissionFrom } from "#runtime/results/submission.ts";
import { byOwnClock } from "#runtime/time/duration.ts";
import type { Relay } from "../delivery/relay.ts";
import { type Answers, refuseResolved, refuseUnknown } from "../requests/answers.ts";
import type { Attachments } from "../streams/attachments.ts";
import { attachmentHeader, canceledHeader, peerReasons } from "../subscriptions/peers.ts";

export interface PeerRouteParts {
  attachments: Attachments;
  answers: Answers;
  relay: Relay;
}

/** What the other instances ask of this one, under its own name: never passed on. */
export function createPeerRoutes({ attachments, answers, relay }: PeerRouteParts): (router: ConnectRouter) => void {
  /** Lasts as long as the caller's stream; says at its end how that ended. */
  const carry = async (attachmentId: string, request: ExecuteToolRequest, signal: AbortSignal): Promise<never> => {
    const carriage = await attachments.carry(attachmentId, requestFrom(request), signal).catch((error: unknown) => {
      // its holder has died, and with it the waiting for an answer; one that is canceled says so itself
      const isLost = signal.aborted && failureFromConnectError(signal.reason).code === "unavailable";
      if (isLost) attachments.find(attachmentId)?.cancel(request.callId, CallerToolCancellationReason.CANCELED);
      throw error;
    });
    if (carriage.kind === "absent")
      return refuse("failed_precondition", "no such stream", { reason: peerReasons.absent });
    if (carriage.end === "replaced")
      return refuse("aborted", "the stream was replaced", { reason: peerReasons.replaced });
    return refuse("unavailable", "the stream ended", { reason: peerReasons.gone });
  };

  return (router) => {
    router.service(ToolProviderService, {
      async *executeTool(request, context) {
        const attachmentId = context.requestHeader.get(attachmentHeader);
        const canceled = context.requestHeader.get(canceledHeader);
        if (attachmentId !== null && canceled !== null) {
          attachments.find(attachmentId)?.cancel(request.callId, Number(canceled) as CallerToolCancellationReason);
          return;
        }
        if (attachmentId !== null) await carry(attachmentId, request, context.signal);
        yield {
          event: { case: "result", value: providedResult(await relay.joinHere(byOwnClock(request), context.signal)) },
        };
      },
    });
    router.service(CallerService, {
      async respond({ sessionId, requestId, ...given }) {
        const submission = submissionFrom(given, requestId);
        const reception = await answers.respondHere(sessionId, requestId, submission);
        if (reception === "lost") refuseResolved(requestId);
        if (reception !== "won") refuseUnknown(requestId);
        return { late: false };
      },
      getDeclaration: (_, context) => ({
        attached: attachments.find(context.requestHeader.get(attachmentHeader) ?? "") !== undefined,
      }),
    });
  };
}

function requestFrom(request: ExecuteToolRequest) {
  return create(CallerToolRequestSchema, {
    requestId: request.callId,
    sessionId: request.scope?.sessionId ?? "",
    tool: request.tool,
    argumentsJson: request.argumentsJson,
    ...(request.deadline && { expireTime: request.deadline }),
  });
}
