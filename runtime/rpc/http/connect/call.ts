import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { ConnectRouterOptions } from "@connectrpc/connect";
import type { MethodSerializationLookup } from "@connectrpc/connect/protocol";
import { HEAVY_BYTES, ownTurn } from "../../../collections/own-turn.ts";
import type { CallContext } from "../../handling/handler-context.ts";
import type { RecordedMethod } from "../../handling/recording-router.ts";
import { isLargeJson, refuseManyValues } from "../large-messages/many-values.ts";
import { messageFromLargeJson } from "../large-messages/transcoder.ts";
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
  { head: { isBinary }, message }: ReadCall,
): Promise<MessageShape<DescMessage>> {
  const { input } = spec.method;
  if (message.length > HEAVY_BYTES) {
    await ownTurn();
    refuseManyValues(message, input, isBinary);
    if (!isBinary && isLargeJson(message)) return messageFromLargeJson(input, message, jsonOptions);
  }
  return serialization.getI(isBinary).parse(message);
}
