import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import type { MethodSerializationLookup } from "@connectrpc/connect/protocol";
import type { CallContext } from "../../handling/handler-context.ts";
import type { RecordedMethod } from "../../handling/recording-router.ts";
import { refuseManyValues } from "../body/many-values.ts";
import type { HttpResponse } from "../messages.ts";
import type { RequestHead } from "./exchange.ts";

/** How the answers of a method are written. */
export interface Writing {
  readonly serialization: MethodSerializationLookup<DescMessage, DescMessage>;
  readonly jsonOptions: ConnectRouterOptions["jsonOptions"];
  readonly compressMinBytes: number;
}

/** A request that has been read. */
export interface ReadCall {
  readonly head: RequestHead;
  readonly context: CallContext;
  readonly message: Uint8Array;
  readonly response: HttpResponse;
}

/** The message of a request. Throws `invalid_argument` for what is none, or has too many values. */
export function inputOf(
  { spec }: RecordedMethod,
  { serialization }: Writing,
  call: ReadCall,
): MessageShape<DescMessage> {
  const { head, message } = call;
  refuseManyValues(message, spec.method.input, head.isBinary);
  return serialization.getI(head.isBinary).parse(message);
}
