import { createFileRegistry, fromBinary, fromJsonString, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { move } from "piscina";
import type { Transcoding } from "./transcoder.ts";

/** The work of a thread of `transcoder.ts`. Throws what the library says of a text that is no such message. */
export default function transcode({ files, typeName, json, options }: Transcoding): unknown {
  const desc = createFileRegistry(fromBinary(FileDescriptorSetSchema, files)).getMessage(typeName);
  if (!desc) throw new TypeError(`the files do not describe ${typeName}`);
  const message = fromJsonString(desc, new TextDecoder().decode(json), options);
  return move(toBinary(desc, message));
}
