import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import { intercepted } from "../../handling/intercepted.ts";
import { parseAnswer } from "./answer.ts";
import type { ClientContext } from "./client-call.ts";
import { type CallInit, OutgoingCall } from "./outgoing-call.ts";
import { callUnary } from "./unary-call.ts";

interface UnaryInit<I extends DescMessage, O extends DescMessage> extends CallInit<DescMethodUnary<I, O>> {
  readonly message: MessageInitShape<I>;
}

/** Runs a unary call with its interceptors and its deadline, as Connect's `runUnaryCall` does. */
export async function runUnary<I extends DescMessage, O extends DescMessage>(
  context: ClientContext,
  init: UnaryInit<I, O>,
): Promise<UnaryResponse<I, O>> {
  const { method } = init;
  const call = new OutgoingCall<UnaryRequest>(init, false, create(method.input, init.message));
  const next = async (passed: UnaryRequest): Promise<UnaryResponse> => {
    const body = toBinary(method.input, passed.message as MessageShape<I>);
    const answer = await callUnary(context, call.sent(passed), body);
    call.progress.stage = "answered";
    const { body: answered, header, trailer } = answer;
    const message = await parseAnswer(method.output, answered, passed, context);
    return { stream: false, method, service: method.parent, message, header, trailer };
  };
  try {
    const response = await intercepted(next, init.interceptors)(call.request);
    call.signal.end();
    return response as UnaryResponse<I, O>;
  } catch (thrown) {
    throw call.fail(thrown);
  }
}
