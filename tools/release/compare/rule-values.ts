import { type DescMessage, type DescOneof, getOption, type Message, ScalarType, toJson } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { DurationSchema, TimestampSchema } from "@bufbuild/protobuf/wkt";
import {
  FieldRulesSchema,
  field as fieldRules,
  message as messageRules,
  oneof as oneofRules,
  type Rule,
  RuleSchema,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";

export type RuleValue = bigint | number | string | boolean | readonly string[];

/** Rules by their path, such as `repeated.items.string.max_len`. A rule that forbids nothing is left out. */
export type Rules = ReadonlyMap<string, RuleValue>;

export interface RuledElement {
  /** `toolbus.tool.v1.Tool.name`; a message or a oneof by its own name. */
  readonly name: string;
  readonly rules: Rules;
}

/** What protovalidate checks of a message, of its oneofs and of its fields, by what stays the same when a name changes. */
export function ruledElements(message: DescMessage): Map<string, RuledElement> {
  const elements: [string, RuledElement][] = [
    ["message", { name: message.typeName, rules: rulesOfMessage(message) }],
    ...message.fields.map((field): [string, RuledElement] => [
      `field ${field.number}`,
      { name: `${message.typeName}.${field.name}`, rules: flatten(FieldRulesSchema, getOption(field, fieldRules)) },
    ]),
    ...message.oneofs.map((oneof): [string, RuledElement] => [
      `oneof ${oneof.name}`,
      { name: `${message.typeName}.${oneof.name}`, rules: rulesOfOneof(oneof) },
    ]),
  ];
  return new Map(elements);
}

function rulesOfMessage(message: DescMessage): Rules {
  const { cel, celExpression, oneof } = getOption(message, messageRules);
  const groups = oneof.flatMap(({ fields, required }) => {
    const names = fields.join(", ");
    return [`at most one of ${names}`, ...(required ? [`at least one of ${names}`] : [])];
  });
  const expressions = [...celExpression, ...expressionsOf(cel)];
  return new Map([
    ...(expressions.length > 0 ? [["cel", expressions] as const] : []),
    ...(groups.length > 0 ? [["oneof", groups] as const] : []),
  ]);
}

function rulesOfOneof(oneof: DescOneof): Rules {
  return getOption(oneof, oneofRules).required ? new Map([["required", true]]) : new Map();
}

/** A rule's message and id are words; what it refuses is in its expression. */
function expressionsOf(rules: readonly Rule[]): string[] {
  return rules.map(({ expression }) => expression);
}

function flatten(schema: DescMessage, message: Message): Map<string, RuleValue> {
  const found = new Map<string, RuleValue>();
  collect(reflect(schema, message), "", found);
  return found;
}

function collect(rules: ReflectMessage, prefix: string, found: Map<string, RuleValue>): void {
  for (const field of rules.fields) {
    if (!rules.isSet(field)) continue;
    const path = `${prefix}${field.name}`;
    if (field.fieldKind === "message" && !isTime(field.message)) collect(rules.get(field), `${path}.`, found);
    else if (field.name !== "example") addRule(path, plain(rules, field), found);
  }
  for (const { no, data } of rules.getUnknown() ?? []) {
    found.set(`${prefix}[${no}]`, Buffer.from(data).toString("hex"));
  }
}

/** `required = false` and the like say nothing; of the rules that are `true` without a word, only `strict` is. */
function addRule(path: string, value: RuleValue, found: Map<string, RuleValue>): void {
  if (value !== false || /(^|\.)(const|strict)$/.test(path)) found.set(path, value);
}

const isTime = (message: DescMessage) =>
  message.typeName === DurationSchema.typeName || message.typeName === TimestampSchema.typeName;

function plain(rules: ReflectMessage, field: ReflectMessage["fields"][number]): RuleValue {
  if (field.fieldKind === "list") {
    const list = [...rules.get(field)];
    if (field.listKind === "message" && field.message.typeName === RuleSchema.typeName) {
      return list.map((rule) => (rule as ReflectMessage).message as Rule).map(({ expression }) => expression);
    }
    return list.map((item) => textOf(item));
  }
  if (field.fieldKind === "message") return nanosOf((rules.get(field) as ReflectMessage).message as unknown as Time);
  const value: unknown = rules.get(field as never);
  if (field.fieldKind === "scalar" && field.scalar === ScalarType.BYTES) return textOf(value);
  return value as RuleValue;
}

interface Time {
  seconds: bigint;
  nanos: number;
}

function nanosOf({ seconds, nanos }: Time): bigint {
  return seconds * 1_000_000_000n + BigInt(nanos);
}

function textOf(item: unknown): string {
  if (item instanceof Uint8Array) return Buffer.from(item).toString("hex");
  if (typeof item !== "object" || item === null) return String(item);
  const { desc, message } = item as ReflectMessage;
  return JSON.stringify(toJson(desc, message));
}
