// Generated stubs carry the contract's rules: what a field may hold, who may call a method. The suite judges by them; a page that
// does not is a third smaller without them.

import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type DescriptorProto, type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

const DESCRIPTOR = /fileDesc\(\s*"([^"]+)"(?:,\s*\[([^\]]*)\])?/;
const RULES = "file_buf_validate_validate";
const ACCESS = "file_toolbus_access_v1_access";

/** The code of a stub without the rules of what it describes; nothing for what is no stub. */
export function leaveRulesOut(code: string, path: string): string | undefined {
  if (!path.endsWith("_pb.ts")) return undefined;
  return code.replace(DESCRIPTOR, (_, base64: string, imported = "") => {
    const file = fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, "base64"));
    clearOptions(file);
    const left = namesIn(imported).filter((name) => name !== RULES && (name !== ACCESS || usesAccess(file)));
    const bytes = toBinary(FileDescriptorProtoSchema, file);
    return `fileDesc("${Buffer.from(bytes).toString("base64").replace(/=+$/, "")}", [${left.join(", ")}]`;
  });
}

function namesIn(list: string): string[] {
  return list
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

function clearOptions(file: FileDescriptorProto): void {
  file.options = undefined;
  for (const message of file.messageType) clearMessage(message);
  for (const { method } of file.service) for (const one of method) one.options = undefined;
  for (const { value } of file.enumType) for (const one of value) one.options = undefined;
}

function clearMessage(message: DescriptorProto): void {
  if (!message.options?.mapEntry) message.options = undefined;
  for (const field of message.field) field.options = undefined;
  for (const oneof of message.oneofDecl) oneof.options = undefined;
  for (const nested of message.nestedType) clearMessage(nested);
}

/** Whether a field is of one of its messages, or the file is its own. */
function usesAccess(file: FileDescriptorProto): boolean {
  return file.messageType.some(({ field }) => field.some(({ typeName }) => typeName.startsWith(".toolbus.access.")));
}
