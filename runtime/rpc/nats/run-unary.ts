import {
  create,
  type DescMessage,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextValues,
  type Interceptor,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { parseAnswer } from "./answer.ts";
import { abortFromSignal, CallSignal } from "./call-signal.ts";
import { type ClientContext, errorOfCall, type MethodRoute, type Progress } from "./client-call.ts";
import { intercepted } from "./invoke-unary.ts";
import { LazyMetadata } from "./lazy-metadata.ts";
import { callUnary, type UnaryAnswer } from "./unary-call.ts";

/** One call of a generated client, as it came. */
export interface UnaryInit<I extends DescMessage, O extends DescMessage> {
  readonly method: DescMethodUnary<I, O>;
  readonly route: MethodRoute;
  readonly interceptors: readonly Interceptor[];
  readonly signal: AbortSignal | undefined;
  readonly timeoutMs: number | undefined;
  readonly header: ConstructorParameters<typeof Headers>[0];
  readonly contextValues: ContextValues | undefined;
  readonly message: MessageInitShape<I>;
}

/**
 * Runs a unary call with its interceptors and its deadline, as Connect's `runUnaryCall` does; the signal, the metadata and the
 * context values are made when they are asked for.
 */
export async function runUnary<I extends DescMessage, O extends DescMessage>(
  context: ClientContext,
  init: UnaryInit<I, O>,
): Promise<UnaryResponse<I, O>> {
  const { method, route, timeoutMs } = init;
  const deadline = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
  const progress: Progress = { stage: "unsent" };
  const signal = new CallSignal(init.signal, timeoutMs);
  const metadata = new LazyMetadata(init.header);
  const request = requestFrom(init, signal, metadata);
  const next = async (passed: UnaryRequest): Promise<UnaryResponse> => {
    const isSame = passed === request;
    const header = isSame ? metadata.touched : passed.header;
    const abort = isSame ? signal : abortFromSignal(passed.signal);
    const body = toBinary(method.input, passed.message as MessageShape<I>);
    const answer = await callUnary(context, { subject: route.subject, header, deadline, abort, progress }, body);
    progress.stage = "answered";
    return responseFrom(method, answer);
  };
  try {
    const response = await intercepted(next, init.interceptors)(request);
    signal.end();
    return response as UnaryResponse<I, O>;
  } catch (thrown) {
    const { aborted } = signal;
    const error = aborted ? ConnectError.from(aborted.reason, Code.Canceled) : ConnectError.from(thrown);
    signal.end(error);
    throw errorOfCall(error, progress);
  }
}

function requestFrom<I extends DescMessage, O extends DescMessage>(
  init: UnaryInit<I, O>,
  signal: CallSignal,
  metadata: LazyMetadata,
): UnaryRequest {
  const { method, route } = init;
  let values = init.contextValues;
  return {
    stream: false,
    method,
    service: method.parent,
    requestMethod: "POST",
    url: route.url,
    message: create(method.input, init.message),
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

function responseFrom(method: DescMethodUnary, answer: UnaryAnswer): UnaryResponse {
  return {
    stream: false,
    method,
    service: method.parent,
    message: parseAnswer(method.output, answer.body),
    get header() {
      return answer.metadata.header;
    },
    get trailer() {
      return answer.metadata.trailer;
    },
  };
}
