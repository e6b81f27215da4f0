import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { withoutPrincipal } from "#runtime/rpc/identity.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { clientFor } from "../../clients.ts";
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
    const { session } = await asked(() => sessions.getSession({ sessionId }));
    return session ?? refuse("not_found", `no session ${sessionId}`, { reason: "SESSION_NOT_FOUND" });
  };
  const submit: SubmitAnswer = async (answer) => (await asked(() => calls.submitToolResult(answer))).call;
  const findSpace: FindSpace = async (callId) => (await asked(() => calls.getToolCall({ callId }))).call?.spaceId ?? "";
  return { readSession, submit, findSpace };
}

async function asked<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await withoutPrincipal(call);
  } catch (error) {
    throw failureFromConnectError(error);
  }
}
