import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { askOnOwnBehalf, clientFor } from "../../clients.ts";
import type { FindSpace, SubmitAnswer } from "../messages/answers.ts";
import type { ReadSession } from "../owners/sessions.ts";

const answerTimeoutMs = 15_000;

/**
 * The router: whose session it is, and which answer wins. It is asked on behalf of this service: whether the person may
 * answer has been decided here, and the call belongs to somebody else.
 */
export function createNeighbours(bus: Bus, telemetry: Telemetry) {
  const interceptors = clientInterceptors({ telemetry });
  const sessions = clientFor(bus, SessionService, { interceptors, defaultTimeoutMs: answerTimeoutMs });
  const calls = clientFor(bus, ToolCallService, { interceptors, defaultTimeoutMs: answerTimeoutMs });

  const readSession: ReadSession = async (sessionId) => {
    const { session } = await askOnOwnBehalf(() => sessions.getSession({ sessionId }));
    return session ?? refuse("not_found", `no session ${sessionId}`, { reason: "SESSION_NOT_FOUND" });
  };
  const submit: SubmitAnswer = async (answer) => (await askOnOwnBehalf(() => calls.submitToolResult(answer))).call;
  const findSpace: FindSpace = async (callId) =>
    (await askOnOwnBehalf(() => calls.getToolCall({ callId }))).call?.spaceId ?? "";
  return { readSession, submit, findSpace };
}
