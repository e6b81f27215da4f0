import {
  create,
  type DescMessage,
  type DescMethodStreaming,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import type { StreamRequest, StreamResponse } from "@connectrpc/connect";
import { Iterated } from "../../../../collections/feeds/iterated.ts";
import { intercepted } from "../../../handling/intercepted.ts";
import { mapped, onlyOf } from "../../../handling/iterable-of.ts";
import { assertMessageFits } from "../../frame/parts.ts";
import { parseAnswer } from "../answer.ts";
import type { ClientContext } from "../client-call.ts";
import { type CallInit, OutgoingCall } from "../outgoing-call.ts";
import { callStream, type StreamRequests } from "./stream-call.ts";

interface StreamInit<I extends DescMessage, O extends DescMessage> extends CallInit<DescMethodStreaming<I, O>> {
  readonly messages: AsyncIterable<MessageInitShape<I>>;
}

/** Runs a stream with its interceptors and its deadline, as Connect's `runStreamingCall` does. */
export async function runStream<I extends DescMessage, O extends DescMessage>(
  context: ClientContext,
  init: StreamInit<I, O>,
): Promise<StreamResponse<I, O>> {
  const { method } = init;
  const requests = mapped(init.messages, (message) => create(method.input, message));
  const call = new OutgoingCall<StreamRequest>(init, true, requests);
  const next = async (passed: StreamRequest): Promise<StreamResponse> => {
    const sent = await requestsOf(method, passed.message as AsyncIterable<MessageShape<I>>);
    const { header, trailer, bodies } = await callStream(context, call.sent(passed), sent);
    const message = mapped(bodies, (answer) => parseAnswer(method.output, answer, passed, context));
    return { stream: true, service: method.parent, method, header, trailer, message };
  };
  try {
    const response = await intercepted(next, init.interceptors)(call.request);
    return { ...response, message: ending(response.message, call) } as StreamResponse<I, O>;
  } catch (thrown) {
    throw call.fail(thrown);
  }
}

async function requestsOf<I extends DescMessage>(
  { methodKind, input }: DescMethodStreaming<I>,
  messages: AsyncIterable<MessageShape<I>>,
): Promise<StreamRequests> {
  if (methodKind === "server_streaming") return { kind: "one", body: toBinary(input, await onlyOf(messages)) };
  const bodies = mapped(messages, (message) => {
    const body = toBinary(input, message);
    assertMessageFits("the request", body);
    return body;
  });
  return { kind: "many", bodies };
}

/** The call is over with its last answer or its failure, and once it was given up nothing more of it is handed out. */
function ending<T>(messages: AsyncIterable<T>, call: OutgoingCall<StreamRequest>): AsyncIterable<T> {
  const { signal } = call;
  return new Iterated<T>(() => {
    const iterator = messages[Symbol.asyncIterator]();
    let isOver = false;
    return {
      async next() {
        if (!isOver && signal.aborted) throw call.fail(signal.aborted.reason);
        try {
          const result = await iterator.next();
          isOver = result.done === true;
          call.hear();
          if (isOver) signal.end();
          return result;
        } catch (thrown) {
          throw call.fail(thrown);
        }
      },
    };
  });
}
