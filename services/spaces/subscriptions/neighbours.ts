import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { askOnOwnBehalf, clientFor, sessionReader } from "../../clients.ts";
import type { FindSpace, SubmitAnswer } from "../messages/answers.ts";

const answerTimeoutMs = 15_000;

/**
 * The router: whose session it is, and which answer wins. It is asked on behalf of this service: whether the person may
 * answer has been decided here, and the call belongs to somebody else.
 */
export function createNeighbours(bus: Bus, telemetry: Telemetry) {
  const options = { interceptors: clientInterceptors({ telemetry }), defaultTimeoutMs: answerTimeoutMs };
  const calls = clientFor(bus, ToolCallService, options);

  const submit: SubmitAnswer = async (answer) => (await askOnOwnBehalf(() => calls.submitToolResult(answer))).call;
  const findSpace: FindSpace = async (callId) =>
    (await askOnOwnBehalf(() => calls.getToolCall({ callId }))).call?.spaceId ?? "";
  return { readSession: sessionReader(bus, options), submit, findSpace };
}
