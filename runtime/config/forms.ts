import { isAbsolute, resolve } from "node:path";

/** How a kind of value is written in the environment. */
export interface Form<T> {
  /** In a fault: what was expected instead. */
  readonly expected: string;
  /** In the reference of settings. */
  readonly name: string;
  /** Gives undefined for what is not written so. */
  readonly parse: (text: string) => T | undefined;
  /** A default as an operator would write it. */
  readonly write: (value: T) => string;
}

export interface Bounds {
  min?: number | undefined;
  max?: number | undefined;
}

export function textForm<T extends string>(oneOf: readonly T[] | undefined): Form<T> {
  const write = (value: T) => value;
  if (!oneOf) return { expected: "some text", name: "text", parse: (text) => text as T, write };
  const parse = (text: string) => oneOf.find((word) => word === text);
  return { expected: `one of ${oneOf.join(", ")}`, name: oneOf.map((word) => `\`${word}\``).join(", "), parse, write };
}

export function integerForm({ min, max, unit }: Bounds & { unit?: string }): Form<number> {
  return {
    expected: `a whole number${rangeText({ min, max })}`,
    name: `${unit ?? "whole number"}${rangeText({ min, max })}`,
    parse: (text) => (/^-?\d+$/.test(text) ? within(Number(text), { min, max }) : undefined),
    write: String,
  };
}

const MILLISECONDS_BY_UNIT: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

export function millisecondsForm(bounds: Bounds): Form<number> {
  const range = rangeText(bounds, writtenTime);
  return {
    expected: `milliseconds, or a time like 30s or 10m${rangeText(bounds)}`,
    name: `time${range}`,
    parse(text) {
      const [, digits, unit = "ms"] = /^(\d+)\s*(ms|s|m|h)?$/.exec(text) ?? [];
      return digits === undefined ? undefined : within(Number(digits) * MILLISECONDS_BY_UNIT[unit]!, bounds);
    },
    write: writtenTime,
  };
}

/** In the largest unit that leaves a whole number. */
function writtenTime(ms: number): string {
  if (ms === 0) return "0";
  const units = Object.entries(MILLISECONDS_BY_UNIT).reverse();
  const [unit, size] = units.find(([, one]) => ms % one === 0) ?? ["ms", 1];
  return `${ms / size}${unit}`;
}

function within(value: number, { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER }: Bounds) {
  return value >= min && value <= max ? value : undefined;
}

function rangeText({ min, max }: Bounds, write: (value: number) => string = String): string {
  const from = min === undefined ? "" : ` from ${write(min)}`;
  const to = max === undefined ? "" : ` up to ${write(max)}`;
  return from + to;
}

export const BOOLEAN: Form<boolean> = {
  expected: "true or false",
  name: "`true`, `false`",
  parse(text) {
    if (/^(true|1|yes|on)$/i.test(text)) return true;
    return /^(false|0|no|off)$/i.test(text) ? false : undefined;
  },
  write: String,
};

export const LIST: Form<string[]> = {
  expected: "a list separated by commas",
  name: "list",
  parse: (text) =>
    text
      .split(/(?<!\\),/)
      .map((item) => item.trim().replaceAll("\\,", ","))
      .filter((item) => item !== ""),
  write: textOfList,
};

/** A comma of an item stands behind a backslash. */
export function textOfList(items: readonly string[]): string {
  return items.map((item) => item.replaceAll(",", "\\,")).join(",");
}

export const PATH: Form<string> = { expected: "a path", name: "path", parse: absolute, write: (path) => path };

export function absolute(path: string): string {
  return isAbsolute(path) ? path : resolve(path);
}
