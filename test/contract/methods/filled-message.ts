import { create, type DescField, type DescMessage, type MessageShape, ScalarType } from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";

/** A message with a short text in every string and one element in every list, as most constraints want it. */
export function filledMessage<D extends DescMessage>(schema: D, depth = 3): MessageShape<D> {
  const message = create(schema);
  const fields = reflect(schema, message);
  for (const field of schema.fields) {
    if (field.oneof !== undefined && field.oneof.fields[0] !== field) continue;
    if (field.fieldKind === "scalar" && field.scalar === ScalarType.STRING) fields.set(field, textFor(field));
    if (field.fieldKind === "message" && depth > 0 && !field.message.typeName.startsWith("google.protobuf.")) {
      fields.set(field, reflect(field.message, filledMessage(field.message, depth - 1)));
    }
    if (field.fieldKind === "list" && field.listKind === "scalar" && field.scalar === ScalarType.STRING) {
      fields.get(field).add("x");
    }
    if (field.fieldKind === "list" && field.listKind === "message" && depth > 0) {
      fields.get(field).add(reflect(field.message, filledMessage(field.message, depth - 1)));
    }
  }
  return message;
}

function textFor(field: DescField): string {
  if (field.name.endsWith("_json")) return "{}";
  if (field.name === "page_token") return "";
  return field.name === "method" ? "POST" : "x";
}
