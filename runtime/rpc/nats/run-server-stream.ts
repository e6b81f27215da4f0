import {
  create,
  type DescMessage,
  type DescMethodServerStreaming,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues, type StreamRequest, type StreamResponse } from "@connectrpc/connect";
import { parseAnswer } from "./answer.ts";
import { abortFromSignal, CallSignal } from "./call-signal.ts";
import { type ClientContext, errorOfCall, type Progress } from "./client-call.ts";
import { interceptedStream } from "./invoke-server-stream.ts";
import { LazyMetadata } from "./lazy-metadata.ts";
import type { StreamInit } from "./run-stream.ts";
import { callStream } from "./stream-call.ts";

type ServerStreamInit<I extends DescMessage, O extends DescMessage> = StreamInit<I, O> & {
  readonly method: DescMethodServerStreaming<I, O>;
};

/**
 * Runs a call of one request and many answers with its interceptors and its deadline, as Connect's `runStreamingCall` does;
 * the signal, the metadata and the context values are made when they are asked for.
 */
export async function runServerStream<I extends DescMessage, O extends DescMessage>(
  context: ClientContext,
  init: ServerStreamInit<I, O>,
): Promise<StreamResponse<I, O>> {
  const { method, route, timeoutMs } = init;
  const deadline = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
  const progress: Progress = { stage: "unsent" };
  const signal = new CallSignal(init.signal, timeoutMs);
  const metadata = new LazyMetadata(init.header);
  const request = requestFrom(init, signal, metadata);
  const next = async (passed: StreamRequest): Promise<StreamResponse> => {
    const isSame = passed === request;
    const header = isSame ? metadata.touched : passed.header;
    const abort = isSame ? signal : abortFromSignal(passed.signal);
    const body = toBinary(method.input, (await firstOf(passed.message)) as MessageShape<I>);
    const call = { subject: route.subject, header, deadline, abort, progress };
    const { header: answered, trailer, bodies } = await callStream(context, call, { kind: "one", body });
    const message = mapped(bodies, (answer) => parseAnswer(method.output, answer));
    return { stream: true, service: method.parent, method, header: answered, trailer, message };
  };
  const failed = (thrown: unknown): ConnectError => {
    const { aborted } = signal;
    const error = aborted ? ConnectError.from(aborted.reason, Code.Canceled) : ConnectError.from(thrown);
    signal.end(error);
    return error;
  };
  try {
    const response = await interceptedStream(next, init.interceptors)(request);
    return { ...response, message: ending(response.message, signal, failed) } as StreamResponse<I, O>;
  } catch (thrown) {
    throw errorOfCall(failed(thrown), progress);
  }
}

function requestFrom<I extends DescMessage, O extends DescMessage>(
  init: ServerStreamInit<I, O>,
  signal: CallSignal,
  metadata: LazyMetadata,
): StreamRequest {
  const { method, route } = init;
  let values = init.contextValues;
  return {
    stream: true,
    method,
    service: method.parent,
    requestMethod: "POST",
    url: route.url,
    message: mapped(init.messages, (message) => create(method.input, message)),
    get signal() {
      return signal.signal;
    },
    get header() {
      return metadata.headers;
    },
    get contextValues() {
      values ??= createContextValues();
      return values;
    },
  };
}

async function firstOf<T>(messages: AsyncIterable<T>): Promise<T> {
  const iterator = messages[Symbol.asyncIterator]();
  const { done, value } = await iterator.next();
  if (done) throw new ConnectError("a call that streams answers needs its one request", Code.InvalidArgument);
  iterator.return?.().catch(() => {}); // nothing more is asked of it, whatever it says
  return value;
}

/** The call is over with its last answer or its failure, and once it was given up nothing more of it is handed out. */
function ending<T>(
  messages: AsyncIterable<T>,
  signal: CallSignal,
  failed: (thrown: unknown) => ConnectError,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = messages[Symbol.asyncIterator]();
      let isOver = false;
      return {
        async next() {
          if (!isOver && signal.aborted) throw failed(signal.aborted.reason);
          try {
            const result = await iterator.next();
            isOver = result.done === true;
            if (isOver) signal.end();
            return result;
          } catch (thrown) {
            throw failed(thrown);
          }
        },
      };
    },
  };
}

function mapped<T, U>(items: AsyncIterable<T>, map: (item: T) => U): AsyncIterable<U> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = items[Symbol.asyncIterator]();
      return {
        async next() {
          const result = await iterator.next();
          return result.done ? result : { done: false, value: map(result.value) };
        },
        async return() {
          await iterator.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
