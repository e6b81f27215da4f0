import { addAbortListener } from "node:events";
import { toBinary } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { type CallerDeclaration, CallerDeclarationSchema } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { type CallerService, WatchDeclarationResponseSchema } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import type { ModelTool } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Quota } from "#runtime/bus/quota/quota.ts";
import { refuse, refuseField } from "#runtime/failure/failure.ts";
import { readableSubmissionFrom } from "#runtime/results/submission.ts";
import { withEtag } from "#runtime/rpc/etag.ts";
import { callerOf, principalOf, takerOf } from "#runtime/rpc/identity.ts";
import type { Validator } from "#runtime/schema/json-schema/validator.ts";
import { msFromDuration } from "#runtime/time/duration.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { namesFromDeclaration, requireFreeNames, requireSchemas } from "../declarations/declaration.ts";
import type { Declarations } from "../delivery/declarations.ts";
import type { Answers } from "../requests/answers.ts";
import type { ProgressReports } from "../requests/progress.ts";
import type { Sessions } from "../sessions.ts";
import { type AttachingParts, attachCaller } from "../streams/attaching.ts";
import type { StreamEnd } from "../streams/attachment.ts";
import { streamsOf } from "../streams/stream-record.ts";
import { peerReasons } from "../subscriptions/peers.ts";

export interface RelayRouteParts extends AttachingParts {
  declarations: Declarations;
  sessions: Sessions;
  answers: Answers;
  progress: ProgressReports;
  /** What the session's agent has, its caller's tools too. */
  toolsOf: (sessionId: string) => Promise<readonly ModelTool[]>;
  /** Who is over its quota of what all declarations take. */
  quota: Pick<Quota, "requireRoomUnless">;
  validator: Pick<Validator, "faultOfSchema">;
  graceMs: number;
  maxGraceMs: number;
  /** Ends watches and the streams of callers when the service stops, with what watches are told. */
  stopping: AbortSignal;
}

export function relayRoutes(parts: RelayRouteParts): ServiceImpl<typeof CallerService> {
  const { declarations, sessions, answers, records } = parts;
  return {
    async declareTools({ sessionId, declaration }, context) {
      const declared = declaration ?? refuseField("declaration", "is required");
      const names = namesFromDeclaration(declared);
      const caller = callerOf(context);
      await sessions.requireOpen(sessionId, caller);
      if (names.length > 0) requireFreeNames(declared, await parts.toolsOf(sessionId));
      await requireSchemas(declared, (_, text) => parts.validator.faultOfSchema(text, principalOf(caller)));
      const bytes = bytesOf(declared);
      const isNoLonger = async () => bytes <= bytesOf(await declarations.read(sessionId));
      if (names.length > 0) await parts.quota.requireRoomUnless(principalOf(caller), bytes, isNoLonger);
      await declarations.write(sessionId, declared);
      return { names };
    },
    async *watchCaller({ sessionId, reconnectGrace, streamId }, context) {
      await sessions.requireOpen(sessionId, callerOf(context));
      const graceMs = Math.min(msFromDuration(reconnectGrace) ?? parts.graceMs, parts.maxGraceMs);
      await using caller = await attachCaller(parts, sessionId, { streamId, graceMs });
      const { attachment } = caller;
      using _left = addAbortListener(context.signal, () => attachment.end("detached"));
      using _stops = addAbortListener(parts.stopping, () => attachment.end("stopping"));
      const declaration = await declarations.read(sessionId);
      yield { event: { case: "attached", value: { sessionId, callerId: declaration?.callerId ?? "" } } };
      for await (const event of attachment.events) yield { event };
      refuseEnd(sessionId, await attachment.ended);
    },
    async respond({ sessionId, requestId, ...given }, context) {
      await sessions.requireOwner(sessionId, callerOf(context));
      const submission = await readableSubmissionFrom(given, requestId, takerOf(context));
      return answers.respond(sessionId, requestId, submission);
    },
    async reportProgress(report, context) {
      await sessions.requireOwner(report.sessionId, callerOf(context));
      await parts.progress.report(report);
      return {};
    },
    async getDeclaration({ sessionId }, context) {
      await sessions.requireOwner(sessionId, callerOf(context));
      const [declaration, found] = await Promise.all([declarations.read(sessionId), records.read(sessionId)]);
      const states = streamsOf(found?.value).map((stream) => parts.stateOf(stream, sessionId));
      return { attached: (await Promise.all(states)).includes("attached"), ...(declaration && { declaration }) };
    },
    async *watchDeclaration({ sessionId }, context) {
      await sessions.requireOwner(sessionId, callerOf(context));
      using ending = openEnding(context.signal, parts.stopping);
      for await (const declaration of declarations.follow(sessionId, ending.signal))
        yield withEtag(WatchDeclarationResponseSchema, declaration === undefined ? {} : { declaration });
      parts.stopping.throwIfAborted();
    },
  };
}

/** A stream that its caller did not end itself says why it ended. */
function refuseEnd(sessionId: string, end: StreamEnd): void {
  if (end === "replaced") {
    refuse("aborted", `another stream of session ${sessionId} was attached in place of this one`, {
      reason: peerReasons.replaced,
    });
  }
  if (end === "closed") refuse("failed_precondition", `session ${sessionId} was closed`, { reason: "SESSION_CLOSED" });
  if (end === "stopping") refuse("unavailable", "this instance stops: attach again", { reason: "INSTANCE_STOPPING" });
}

function bytesOf(declaration: CallerDeclaration | undefined): number {
  return declaration === undefined ? 0 : toBinary(CallerDeclarationSchema, declaration).length;
}
