import { create, setExtension, toBinary } from "@bufbuild/protobuf";
import { fileDesc, type GenService, serviceDesc } from "@bufbuild/protobuf/codegenv2";
import { base64Encode } from "@bufbuild/protobuf/wire";
import {
  type BytesValueSchema,
  FileDescriptorProtoSchema,
  file_google_protobuf_wrappers,
  MethodOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { file_toolbus_access_v1_access, Rule, rule } from "#gen/toolbus/access/v1/access_pb.ts";

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

const options = create(MethodOptionsSchema);
setExtension(options, rule, Rule.PUBLIC);

const file = create(FileDescriptorProtoSchema, {
  name: "toolbus/echo/v1/echo.proto",
  package: "toolbus.echo.v1",
  syntax: "proto3",
  dependency: ["google/protobuf/wrappers.proto", "toolbus/access/v1/access.proto"],
  service: [
    {
      name: "EchoService",
      method: [
        { name: "Unary", inputType: BYTES, outputType: BYTES, options },
        { name: "ServerStream", inputType: BYTES, outputType: BYTES, options, serverStreaming: true },
        { name: "ClientStream", inputType: BYTES, outputType: BYTES, options, clientStreaming: true },
        { name: "Bidi", inputType: BYTES, outputType: BYTES, options, clientStreaming: true, serverStreaming: true },
      ],
    },
  ],
});

export const EchoService: GenService<{
  unary: Shape<"unary">;
  serverStream: Shape<"server_streaming">;
  clientStream: Shape<"client_streaming">;
  bidi: Shape<"bidi_streaming">;
}> = serviceDesc(
  fileDesc(base64Encode(toBinary(FileDescriptorProtoSchema, file)), [
    file_google_protobuf_wrappers,
    file_toolbus_access_v1_access,
  ]),
  0,
);
