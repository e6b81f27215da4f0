import type { Scope } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { AskingCall as CallOfModel } from "#runtime/money/agent-models.ts";
import type { Answer } from "../calls/answer.ts";
import type { Ask } from "./frames.ts";

/** The call in which a tool asks for something. */
export interface AskingCall extends CallOfModel {
  readonly callId: string;
  readonly scope: Scope | undefined;
}

/** What tools reach through the service: the agent's tools and models, on behalf of the session that called. */
export interface Host {
  /**
   * JSON text of the value, or the error of a tool. `id` is the same when the same call asks for the same again. Rejects
   * with a Failure.
   */
  answer(ask: Ask, id: string, call: AskingCall): Promise<Answer>;
}
