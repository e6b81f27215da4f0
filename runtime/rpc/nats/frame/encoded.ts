import { type DescMessage, type Message, type MessageShape, toBinary } from "@bufbuild/protobuf";

const bytesByMessage = new WeakMap<Message, Uint8Array>();

/** For a message that is sent to many, and is not changed any more: what it is on the wire is not worked out for each of them. */
export function keepEncoded(message: Message, bytes: Uint8Array): void {
  bytesByMessage.set(message, bytes);
}

export function encoded<D extends DescMessage>(schema: D, message: MessageShape<D>): Uint8Array {
  return bytesByMessage.get(message) ?? toBinary(schema, message);
}
