import { type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { unknownOutcome } from "../call/delivery.ts";

export function parseAnswer<O extends DescMessage>(desc: O, body: Uint8Array): MessageShape<O> {
  try {
    return fromBinary(desc, body);
  } catch (error) {
    throw unknownOutcome(`the answer is no ${desc.typeName}`, Code.Internal, error);
  }
}
