import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import type { MethodSerializationLookup } from "@connectrpc/connect/protocol";
import type { CallContext } from "../../handling/handler-context.ts";
import { isShort, turnToParse } from "../../handling/messages/many-values.ts";
import type { RecordedMethod } from "../../handling/recording-router.ts";
import { takerOf } from "../../identity.ts";
import { requireExact, requireUtf8 } from "../large-messages/counted-messages.ts";
import { LARGE_JSON_BYTES, messageFromLargeJson } from "../large-messages/transcoder.ts";
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

/** The message of a request. Throws `invalid_argument` for what is none, `resource_exhausted` for one of too many values. */
export async function inputOf(
  { spec }: RecordedMethod,
  { serialization, jsonOptions = {} }: Writing,
  { head: { isBinary }, message, context }: ReadCall,
): Promise<MessageShape<DescMessage>> {
  const { input } = spec.method;
  if (!isBinary) requireUtf8(message);
  if (!isBinary && message.length > LARGE_JSON_BYTES)
    return messageFromLargeJson(input, message, { taker: takerOf(context), options: jsonOptions });
  if (!isShort(message)) await turnToParse(message, { desc: input, isBinary, ...takerOf(context) });
  if (!isBinary) requireExact(message);
  return serialization.getI(isBinary).parse(message);
}
