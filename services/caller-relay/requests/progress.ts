import { create } from "@bufbuild/protobuf";
import type { ReportProgressRequest } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { ToolProgressSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { type AnswersParts, refuseUnknown } from "./answers.ts";
import { keyOfRequest } from "./requests.ts";

export interface ProgressParts extends Pick<AnswersParts, "requests" | "holders"> {
  /** Tells the instance that holds the call; false when it does not. */
  forward: (instance: string, report: ReportProgressRequest) => Promise<boolean>;
}

export type ProgressReports = ReturnType<typeof createProgressReports>;

/** How far callers have come with requests, on its way to whoever waits for them. */
export function createProgressReports({ requests, holders, forward }: ProgressParts) {
  /** False when the request does not wait here. */
  const reportHere = ({ sessionId, requestId, progress, total, message }: ReportProgressRequest) =>
    requests.tellProgress(keyOfRequest(sessionId, requestId), create(ToolProgressSchema, { progress, total, message }));
  return {
    reportHere,
    /** Refuses one of a request that waits nowhere. */
    async report(report: ReportProgressRequest): Promise<void> {
      if (reportHere(report)) return;
      const holder = await holders.locate(report.sessionId, report.requestId);
      if (holder === undefined || !(await forward(holder, report))) refuseUnknown(report.requestId);
    },
  };
}
