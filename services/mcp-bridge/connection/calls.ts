import { create } from "@bufbuild/protobuf";
import type { InputKind, InputRequest, InputResponses } from "#gen/toolbus/provider/v1/input_pb.ts";
import {
  type ExecuteToolResponse,
  ExecuteToolResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { LogLevel, ToolLogSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { type CallEvent, type Executed, JoinedCall, JoinedCalls } from "#runtime/results/joined/joined-calls.ts";
import { openEnding } from "#runtime/time/ending.ts";
import type { Ask } from "./input/elicitation.ts";
import { OpenInput } from "./input/open-input.ts";
import { parseState } from "./input/required.ts";

/** The way from a call to those who wait for it. */
export interface CallChannel {
  tell(event: CallEvent): void;
  readonly ask: Ask;
  /** Aborts when nobody waits for the call any more, or it has ended. */
  readonly signal: AbortSignal;
}

export type CallWork = (channel: CallChannel) => Promise<Executed>;

export interface JoiningCall {
  readonly id: string;
  readonly work: CallWork;
  readonly signal: AbortSignal;
  readonly accepted: readonly InputKind[];
  /** Answers to what the call asked for. */
  readonly responses: InputResponses | undefined;
}

/** A call whose server can ask those who wait for it. */
class AskingCall extends JoinedCall implements CallChannel {
  accepted: readonly InputKind[] = [];
  readonly input = new OpenInput((required) => this.tell({ case: "inputRequired", value: required }));

  async ask(kind: InputKind, request: InputRequest["request"], signal: AbortSignal): Promise<string> {
    using ending = openEnding(signal, this.signal);
    if (this.accepted.includes(kind)) return await this.input.ask(request, ending.signal);
    this.tell({ case: "log", value: create(ToolLogSchema, { level: LogLevel.WARN, message: NOBODY_TO_ASK }) });
    return NOT_ANSWERED;
  }
}

/** The calls of all connections together. */
export class Calls {
  readonly #joined = new JoinedCalls<AskingCall>({ maxRetained: 10_000, maxRetainedLength: 64 * 2 ** 20 });

  /** The call's progress and logs, then its result, or what it asks for; throws what the call failed with. */
  async *join({ id, work, signal, accepted, responses }: JoiningCall): AsyncGenerator<ExecuteToolResponse> {
    const isLive = responses !== undefined && parseState(responses.state).live !== undefined;
    const known = this.#joined.find(id);
    const call = known ?? (isLive ? refuseGone() : this.#joined.start(id, new AskingCall(), work));
    call.accepted = accepted;
    if (isLive) call.input.answer(responses);
    for await (const event of call.read(signal, { fromNow: isLive })) {
      const isAnswered = event.case === "inputRequired" && event.value.live && event.value !== call.input.required;
      if (!isAnswered) yield create(ExecuteToolResponseSchema, { event });
    }
  }
}

/** Told to the server that asks in vain, and to whoever reads the log of the call. */
const NOT_ANSWERED = JSON.stringify({ action: "cancel" });
const NOBODY_TO_ASK =
  "the server asked a person, and was told that there is nobody to ask (cancel): whoever made the call asks nobody";

/** A call that its server held open died with the connection. */
function refuseGone(): never {
  return refuse("unavailable", "the server that asked is gone: the call that it held open ended with its connection", {
    reason: "OUTCOME_UNKNOWN",
  });
}
