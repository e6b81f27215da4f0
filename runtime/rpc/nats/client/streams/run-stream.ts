import {
  type DescMessage,
  type DescMethodStreaming,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { ConnectError, createContextValues, type StreamRequest, type StreamResponse } from "@connectrpc/connect";
import { runStreamingCall } from "@connectrpc/connect/protocol";
import { ForeignAbort } from "../../../handling/call-signal.ts";
import { assertMessageFits } from "../../frame/parts.ts";
import { parseAnswer } from "../answer.ts";
import { type ClientContext, type ClientRequest, errorOfCall, type Progress } from "../client-call.ts";
import type { CallInit } from "../outgoing-call.ts";
import { mapped, runServerStream } from "./run-server-stream.ts";
import { callStream } from "./stream-call.ts";

interface StreamInit<I extends DescMessage, O extends DescMessage> extends CallInit<DescMethodStreaming<I, O>> {
  readonly messages: AsyncIterable<MessageInitShape<I>>;
}

/** Runs a stream with its interceptors and its deadline. */
export function runStream<I extends DescMessage, O extends DescMessage>(
  context: ClientContext,
  init: StreamInit<I, O>,
): Promise<StreamResponse<I, O>> {
  const { method } = init;
  if (method.methodKind === "server_streaming") return runServerStream(context, { ...init, method });
  return runRequestStream(context, init);
}

/** A stream of requests, by Connect's own `runStreamingCall`. */
async function runRequestStream<I extends DescMessage, O extends DescMessage>(
  context: ClientContext,
  init: StreamInit<I, O>,
): Promise<StreamResponse<I, O>> {
  const { method, route, signal, timeoutMs } = init;
  const deadlineMs = timeoutMs === undefined ? undefined : performance.now() + timeoutMs;
  const progress: Progress = { stage: "unsent" };
  const next = async (request: StreamRequest<I, O>): Promise<StreamResponse<I, O>> => {
    const abort = new ForeignAbort(request.signal);
    const call: ClientRequest = {
      subject: route.subject,
      header: request.header,
      deadlineMs,
      abort,
      progress,
      isRead: false,
    };
    const { header, trailer, bodies } = await callStream(context, call, {
      kind: "many",
      bodies: bodiesOf(method.input, request.message),
    });
    return {
      stream: true,
      service: method.parent,
      method,
      header,
      trailer,
      message: mapped(bodies, (body) => parseAnswer(method.output, body, request)),
    };
  };
  try {
    const response = await runStreamingCall<I, O>({
      ...(signal && { signal }),
      ...(timeoutMs !== undefined && { timeoutMs }),
      interceptors: init.interceptors,
      req: requestFrom(init),
      next,
    });
    return { ...response, message: withDeliveries(response.message, progress) };
  } catch (error) {
    throw errorOfCall(ConnectError.from(error), progress);
  }
}

/** Says on the failure of a stream that goes on what is known of the delivery: Connect throws the reason of an abort as it is. */
async function* withDeliveries<T>(messages: AsyncIterable<T>, progress: Progress): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (error) {
    throw errorOfCall(ConnectError.from(error), progress);
  }
}

function requestFrom<I extends DescMessage, O extends DescMessage>(init: StreamInit<I, O>) {
  return {
    stream: true as const,
    method: init.method,
    service: init.method.parent,
    requestMethod: "POST",
    url: init.route.url,
    header: new Headers(init.header),
    contextValues: init.contextValues ?? createContextValues(),
    message: init.messages,
  };
}

async function* bodiesOf<I extends DescMessage>(
  desc: I,
  messages: AsyncIterable<MessageShape<I>>,
): AsyncIterable<Uint8Array> {
  for await (const message of messages) {
    const body = toBinary(desc, message);
    assertMessageFits("the request", body);
    yield body;
  }
}
