import { create, type DescMessage, type FileRegistry } from "@bufbuild/protobuf";
import type { FileDescriptorSet } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import { ownFiles, registryFrom } from "../../gen/contract.ts";
import { type RuledElement, type Rules, type RuleValue, ruledElements } from "./rule-values.ts";

/**
 * Every rule of the next contract that may refuse what the released one took, one sentence each. A rule that is not
 * provably equal or looser counts as tighter. Elements that are gone are another check's matter.
 */
export function tightenedRules(released: FileDescriptorSet, next: FileDescriptorSet): string[] {
  const nextTypes = registryFrom(next);
  return messagesOf(released).flatMap((message) => {
    const nextMessage = nextTypes.getMessage(message.typeName);
    return nextMessage === undefined ? [] : tightenedIn(message, nextMessage, nextTypes);
  });
}

function messagesOf(contract: FileDescriptorSet): DescMessage[] {
  const own = new Set(ownFiles(contract).map(({ name }) => name));
  return [...registryFrom(contract)].filter(
    (type): type is DescMessage => type.kind === "message" && own.has(type.file.proto.name),
  );
}

function tightenedIn(released: DescMessage, next: DescMessage, types: FileRegistry): string[] {
  const before = ruledElements(released);
  const after = ruledElements(next);
  const isNewField = (key: string) => key.startsWith("field ") && !before.has(key);
  return [
    ...[...after].flatMap(([key, element]) => (isNewField(key) ? [] : tightenedOf(before.get(key), element))),
    ...newFieldsThatMustBeSet(next, (number) => isNewField(`field ${number}`), types),
  ];
}

function tightenedOf(before: RuledElement | undefined, { name, rules }: RuledElement): string[] {
  const old: Rules = before?.rules ?? new Map();
  const paths = new Set([...old.keys(), ...rules.keys()]);
  return [...paths]
    .filter((path) => isTighter(path, old, rules))
    .map((path) => `${name}: ${path} was ${inWords(old.get(path))}, is now ${inWords(rules.get(path))}`);
}

/** A field that is added must do without a value, since clients of the released contract send none. */
function newFieldsThatMustBeSet(
  message: DescMessage,
  isNew: (number: number) => boolean,
  types: FileRegistry,
): string[] {
  const added = message.fields.filter(({ number }) => isNew(number));
  if (added.length === 0) return [];
  const { violations = [] } = createValidator({ registry: types }).validate(message, create(message));
  return violations.flatMap(({ field: [first], message: fault }) => {
    const field = added.find((candidate) => candidate === first);
    return field === undefined ? [] : [`${message.typeName}.${field.name}: is new, and must be set: ${fault}`];
  });
}

const lowerBounds: ReadonlySet<string> = new Set(["min_len", "min_bytes", "min_items", "min_pairs"]);
const upperBounds: ReadonlySet<string> = new Set(["max_len", "max_bytes", "max_items", "max_pairs", "within"]);
const rangeRules: ReadonlySet<string> = new Set(["lt", "lte", "gt", "gte"]);

function isTighter(path: string, before: Rules, after: Rules): boolean {
  const leaf = path.slice(path.lastIndexOf(".") + 1);
  const old = before.get(path);
  const value = after.get(path);
  if (leaf === "ignore") return Number(value ?? 0) < Number(old ?? 0); // from "unspecified" over "if zero" to "always"
  if (leaf === "strict") return old === false && value !== false;
  if (rangeRules.has(leaf)) return isNarrower(rangeAt(path, before), rangeAt(path, after));
  if (value === undefined) return false;
  if (old === undefined) return true;
  if (upperBounds.has(leaf)) return value < old;
  if (lowerBounds.has(leaf)) return value > old;
  if (leaf === "in") return !isSubset(old, value);
  if (leaf === "not_in" || leaf === "oneof" || leaf.startsWith("cel")) return !isSubset(value, old);
  return inWords(value) !== inWords(old);
}

function isSubset(part: RuleValue, whole: RuleValue): boolean {
  return Array.isArray(part) && Array.isArray(whole) && part.every((item) => whole.includes(item));
}

interface Bound {
  readonly value: bigint | number;
  readonly isInside: boolean;
}

interface Range {
  readonly lower: Bound | undefined;
  readonly upper: Bound | undefined;
}

function rangeAt(path: string, rules: Rules): Range {
  const parent = path.slice(0, path.lastIndexOf(".") + 1);
  const bound = (outside: string, inside: string): Bound | undefined => {
    const name = [outside, inside].find((candidate) => rules.has(parent + candidate));
    if (name === undefined) return undefined;
    return { value: rules.get(parent + name) as Bound["value"], isInside: name === inside };
  };
  return { lower: bound("gt", "gte"), upper: bound("lt", "lte") };
}

function isNarrower(before: Range, after: Range): boolean {
  // Bounds that cross mean "outside of": there a bound that goes makes the rest narrower.
  if (isCrossed(before) || isCrossed(after))
    return !isSame(before.lower, after.lower) || !isSame(before.upper, after.upper);
  return isStricter(before.lower, after.lower, 1) || isStricter(before.upper, after.upper, -1);
}

function isCrossed({ lower, upper }: Range): boolean {
  return lower !== undefined && upper !== undefined && lower.value > upper.value;
}

function isSame(one: Bound | undefined, other: Bound | undefined): boolean {
  return one?.value === other?.value && one?.isInside === other?.isInside;
}

/** Whether the bound that comes after lets less through; a lower bound does when it rises. */
function isStricter(before: Bound | undefined, after: Bound | undefined, rising: 1 | -1): boolean {
  if (after === undefined) return false;
  if (before === undefined) return true;
  if (after.value === before.value) return before.isInside && !after.isInside;
  return rising === 1 ? after.value > before.value : after.value < before.value;
}

function inWords(value: RuleValue | undefined): string {
  if (value === undefined) return "not there";
  if (Array.isArray(value)) return `[${value.join(", ")}]`;
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
