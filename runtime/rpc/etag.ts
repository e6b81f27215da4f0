import { createHash } from "node:crypto";
import { create, type DescMessage, type MessageInitShape, type MessageShape, toBinary } from "@bufbuild/protobuf";

/** The message with an `etag` that is the same wherever the rest of it is, in any process. */
export function withEtag<D extends DescMessage>(
  schema: D,
  init: MessageInitShape<D>,
): MessageShape<D> & { etag: string } {
  const message = create(schema, init) as MessageShape<D> & { etag: string };
  message.etag = "";
  message.etag = createHash("sha256").update(toBinary(schema, message)).digest("base64url").slice(0, 22);
  return message;
}
