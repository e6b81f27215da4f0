import { create } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { type CallerToolCancellationReason, CallerToolRequestSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { CallerService } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { type ExecuteToolRequest, ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { submissionFrom } from "#runtime/results/submission.ts";
import { byOwnClock } from "#runtime/time/duration.ts";
import type { Relay } from "../delivery/relay.ts";
import { type Answers, refuseResolved, refuseUnknown } from "../requests/answers.ts";
import type { ProgressReports } from "../requests/progress.ts";
import type { Attachments, CarryOptions } from "../streams/attachments.ts";
import { attachmentHeader, canceledHeader, holderHeader, peerReasons } from "../subscriptions/peers.ts";
import { eventsOf } from "./call-events.ts";

export interface PeerRouteParts {
  attachments: Attachments;
  answers: Answers;
  progress: ProgressReports;
  relay: Relay;
}

/** What the other instances ask of this one, under its own name: never passed on. */
export function createPeerRoutes(parts: PeerRouteParts): (router: ConnectRouter) => void {
  const { attachments, answers, progress, relay } = parts;
  /** Lasts as long as the caller's stream; says at its end how that ended. */
  const carry = async (attachmentId: string, request: ExecuteToolRequest, by: CarryOptions): Promise<never> => {
    const carriage = await attachments.carry(attachmentId, requestFrom(request), by);
    if (carriage.kind === "absent")
      return refuse("failed_precondition", "no such stream", { reason: peerReasons.absent });
    if (carriage.kind === "unknown")
      return refuse("not_found", "the stream does not carry the request", { reason: peerReasons.unknown });
    if (carriage.end === "answered")
      return refuse("failed_precondition", "the request was answered", { reason: peerReasons.answered });
    if (carriage.end === "replaced")
      return refuse("aborted", "the stream was replaced", { reason: peerReasons.replaced });
    return refuse("unavailable", "the stream ended", { reason: peerReasons.gone });
  };

  return (router) => {
    router.service(ToolProviderService, {
      async *executeTool(request, context) {
        const attachmentId = context.requestHeader.get(attachmentHeader);
        const canceled = context.requestHeader.get(canceledHeader);
        const holder = context.requestHeader.get(holderHeader) ?? "";
        if (attachmentId !== null && canceled !== null) {
          const reason = Number(canceled) as CallerToolCancellationReason;
          attachments.find(attachmentId)?.cancel(request.callId, reason, holder);
          return;
        }
        const mode = request.resumed ? "adopt" : "first";
        if (attachmentId !== null) await carry(attachmentId, request, { signal: context.signal, mode, holder });
        yield* eventsOf((tell) => relay.joinHere(byOwnClock(request), { signal: context.signal, tell }));
      },
    });
    router.service(CallerService, {
      async respond({ sessionId, requestId, ...given }, context) {
        const submission = submissionFrom(given, requestId);
        const attachmentId = context.requestHeader.get(attachmentHeader);
        if (attachmentId !== null) {
          if (!(await answers.keepHere(attachmentId, requestId, submission))) refuseUnknown(requestId);
          return { late: false };
        }
        const reception = await answers.respondHere(sessionId, requestId, submission);
        if (reception === "lost") refuseResolved(requestId);
        if (reception !== "won") refuseUnknown(requestId);
        return { late: false };
      },
      reportProgress(report) {
        if (!progress.reportHere(report)) refuseUnknown(report.requestId);
        return {};
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
