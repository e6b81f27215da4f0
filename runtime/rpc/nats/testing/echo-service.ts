import { create, toBinary } from "@bufbuild/protobuf";
import { fileDesc, type GenService, serviceDesc } from "@bufbuild/protobuf/codegenv2";
import { base64Encode } from "@bufbuild/protobuf/wire";
import {
  type BytesValueSchema,
  FileDescriptorProtoSchema,
  file_google_protobuf_wrappers,
} from "@bufbuild/protobuf/wkt";

/*
 * A service of bytes for tests and measurements, one method of each shape. It is described here and not in `proto/`, since it
 * is no part of the contract.
 */

interface Shape<Kind extends string> {
  methodKind: Kind;
  input: typeof BytesValueSchema;
  output: typeof BytesValueSchema;
}

const BYTES = ".google.protobuf.BytesValue";

const file = create(FileDescriptorProtoSchema, {
  name: "toolbus/echo/v1/echo.proto",
  package: "toolbus.echo.v1",
  syntax: "proto3",
  dependency: ["google/protobuf/wrappers.proto"],
  service: [
    {
      name: "EchoService",
      method: [
        { name: "Unary", inputType: BYTES, outputType: BYTES },
        { name: "ServerStream", inputType: BYTES, outputType: BYTES, serverStreaming: true },
        { name: "ClientStream", inputType: BYTES, outputType: BYTES, clientStreaming: true },
        { name: "Bidi", inputType: BYTES, outputType: BYTES, clientStreaming: true, serverStreaming: true },
      ],
    },
  ],
});

export const EchoService: GenService<{
  unary: Shape<"unary">;
  serverStream: Shape<"server_streaming">;
  clientStream: Shape<"client_streaming">;
  bidi: Shape<"bidi_streaming">;
}> = serviceDesc(fileDesc(base64Encode(toBinary(FileDescriptorProtoSchema, file)), [file_google_protobuf_wrappers]), 0);
