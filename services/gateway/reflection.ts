import { createRegistry, type DescFile, type DescService, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import type { ServerReflectionRequest, ServerReflectionResponseSchema } from "#gen/grpc/reflection/v1/reflection_pb.ts";
import { getOrInsertComputed } from "#runtime/collections/get-or-insert-computed.ts";

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;

export type AnswerReflection = (
  request: ServerReflectionRequest,
) => MessageInitShape<typeof ServerReflectionResponseSchema>;

/**
 * Answers gRPC server reflection for the given services: what they are, and the files that define them with everything
 * that those import, so that a client needs no proto files.
 */
export function createReflection(services: readonly DescService[]): AnswerReflection {
  const files = new Map<string, DescFile>();
  for (const service of services) collectFile(service.file, files);
  const registry = createRegistry(...files.values());

  const answers = new Map<DescFile, Answer>();
  const answerOfFile = (file: DescFile | undefined, fault: string) =>
    file === undefined ? errorAnswer(Code.NotFound, fault) : getOrInsertComputed(answers, file, withImports);

  /** A method or field is found by the type that holds it. */
  const fileOfSymbol = (symbol: string): DescFile | undefined =>
    (registry.get(symbol) ?? registry.get(symbol.slice(0, Math.max(symbol.lastIndexOf("."), 0))))?.file;

  const answer = (request: ServerReflectionRequest["messageRequest"]): Answer => {
    switch (request.case) {
      case "listServices":
        return {
          case: "listServicesResponse",
          value: { service: services.map(({ typeName }) => ({ name: typeName })) },
        };
      case "fileByFilename":
        return answerOfFile(files.get(request.value), `no file "${request.value}"`);
      case "fileContainingSymbol":
        return answerOfFile(fileOfSymbol(request.value), `no symbol "${request.value}"`);
      case "fileContainingExtension": {
        const { containingType, extensionNumber } = request.value;
        const message = registry.getMessage(containingType);
        const extension = message && registry.getExtensionFor(message, extensionNumber);
        return answerOfFile(extension?.file, `no extension ${extensionNumber} of "${containingType}"`);
      }
      case "allExtensionNumbersOfType": {
        const baseTypeName = request.value;
        const extensionNumber = [...registry]
          .filter((entry) => entry.kind === "extension" && entry.extendee.typeName === baseTypeName)
          .map((entry) => (entry.kind === "extension" ? entry.number : 0));
        return { case: "allExtensionNumbersResponse", value: { baseTypeName, extensionNumber } };
      }
      case undefined:
        return errorAnswer(Code.InvalidArgument, "the request asks for nothing");
    }
  };
  return (request) => ({
    validHost: request.host,
    originalRequest: request,
    messageResponse: answer(request.messageRequest),
  });
}

function collectFile(file: DescFile, files: Map<string, DescFile>): void {
  const name = file.proto.name;
  if (files.has(name)) return;
  files.set(name, file);
  for (const dependency of file.dependencies) collectFile(dependency, files);
}

function withImports(file: DescFile): Answer {
  const files = new Map<string, DescFile>();
  collectFile(file, files);
  const fileDescriptorProto = [...files.values()].map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto));
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function errorAnswer(errorCode: Code, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}
