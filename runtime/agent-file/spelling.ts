import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from "@bufbuild/protobuf";
import { isObject } from "../schema/json-object.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** How files write something of a message otherwise than the contract's JSON does. */
interface FieldSpelling {
  /** The contract's field (its JSON name) that is written so; absent for what is no field. */
  readonly field?: string;
  /** The form of what files write, from the form that the field has by itself. */
  readonly schema: (own: JsonSchema) => JsonSchema;
  /** The contract's fields that a value means; absent means the field as it stands. */
  readonly read?: (value: JsonValue) => JsonObject;
}

export interface MessageSpelling {
  /** By the name in files. A field that is named here is written in these ways and in no other. */
  readonly fields?: Readonly<Record<string, FieldSpelling>>;
  /** Fields that files do not have. */
  readonly omitted?: readonly string[];
  /** Fields that the contract demands, and that files may leave out. */
  readonly optional?: readonly string[];
  /** The message as the contract has it, from what files write otherwise of more than one field. */
  readonly read?: (file: JsonObject) => JsonObject;
  /** Further keywords of the whole object. */
  readonly schema?: JsonSchema;
}

/** By the full name of the message. Whatever is not said here is written as the contract's JSON, by three rules for all files. */
export type Spelling = Readonly<Record<string, MessageSpelling>>;

const duration = "google.protobuf.Duration";

/** First rule: a duration is a number of milliseconds, or the contract's own form, such as "30s". */
export const DURATION: JsonSchema = {
  type: ["integer", "string"],
  minimum: 1,
  maximum: 4_294_967_295,
  pattern: "^(?!0+(\\.0+)?s$)[0-9]{1,8}(\\.[0-9]{1,9})?s$",
};

/** The form that the field has by itself. */
export const itsOwn = (own: JsonSchema): JsonSchema => own;

export function isDuration(field: DescField): boolean {
  return messageOf(field)?.typeName === duration;
}

/**
 * Second rule: an integer of 64 bits is a number as long as that is exact (up to 2^53 - 1), or its digits as text, as many as any
 * such integer can have. None of files is negative.
 */
export const LONG: JsonSchema = {
  type: ["integer", "string"],
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  pattern: "^[0-9]{1,18}$",
};

/** Whether a value of the field, or each item of it, is an integer of 64 bits. */
export function isLong({ scalar }: DescField): boolean {
  return scalar !== undefined && [ScalarType.INT64, ScalarType.UINT64].includes(scalar);
}

/** Third rule: a value of an enum is written in lower case and without the enum's name. */
export function namesOf(type: DescEnum): string[] {
  return type.values.filter(({ number }) => number !== 0).map(({ name }) => shortName(type, name));
}

function shortName(type: DescEnum, name: string): string {
  return name.slice(type.sharedPrefix?.length ?? 0).toLowerCase();
}

/** The contract's JSON of what a file says of a message. What is unknown or of another form is left for the contract to refuse. */
export function contractJson(message: DescMessage, file: JsonObject, spelling: Spelling): JsonObject {
  const { fields: spelled = {}, read } = spelling[message.typeName] ?? {};
  const entries = Object.entries(read?.(file) ?? file).flatMap(([name, value]) => {
    const own = Object.hasOwn(spelled, name) ? spelled[name] : undefined;
    return Object.entries(own?.read?.(value) ?? { [own?.field ?? name]: value });
  });
  return Object.fromEntries(
    entries.map(([name, value]) => {
      const field = message.fields.find(({ jsonName }) => jsonName === name);
      return [name, field === undefined ? value : contractValue(field, value, spelling)];
    }),
  );
}

function contractValue(field: DescField, value: JsonValue, spelling: Spelling): JsonValue {
  if (field.fieldKind === "list" && Array.isArray(value))
    return value.map((item) => contractItem(field, item, spelling));
  if (field.fieldKind === "map" && isObject(value))
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, contractItem(field, item, spelling)]));
  return contractItem(field, value, spelling);
}

function contractItem(field: DescField, value: JsonValue, spelling: Spelling): JsonValue {
  const type = field.enum;
  if (type && typeof value === "string")
    return type.values.find(({ name }) => shortName(type, name) === value)?.name ?? value;
  const message = messageOf(field);
  if (message?.typeName === duration) return typeof value === "number" ? `${value / 1000}s` : value;
  const isOwn = message !== undefined && !message.typeName.startsWith("google.protobuf.");
  return isOwn && isObject(value) ? contractJson(message, value, spelling) : value;
}

function messageOf(field: DescField): DescMessage | undefined {
  return field.fieldKind === "message" || field.fieldKind === "list" || field.fieldKind === "map"
    ? field.message
    : undefined;
}
