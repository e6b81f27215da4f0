import { createFileRegistry, fromBinary, fromJsonString, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { move } from "piscina";
import { requireExactIntegers } from "../../../schema/json/exact-json.ts";
import type { Transcoding } from "./transcoder.ts";

/** The work of a thread of `transcoder.ts`. Throws what is wrong with a text that is no such message, or would be changed. */
export default function transcode({ files, typeName, json, options }: Transcoding): unknown {
  const desc = createFileRegistry(fromBinary(FileDescriptorSetSchema, files)).getMessage(typeName);
  if (!desc) throw new TypeError(`the files do not describe ${typeName}`);
  const text = new TextDecoder().decode(json);
  requireExactIntegers(text);
  const message = fromJsonString(desc, text, options);
  return move(toBinary(desc, message));
}
