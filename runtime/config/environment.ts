import { isAbsolute, resolve } from "node:path";
import { LocalFailure } from "../failure/local-failure.ts";

interface Fault {
  name: string;
  /** Absent when nothing was given. */
  given?: string;
  expected: string;
}

interface NumberOptions {
  default?: number;
  min?: number;
  max?: number;
}

/**
 * Reads the variables of one process. A fault does not stop the reading: the value returned then is a placeholder, and
 * `finish` refuses with every fault at once. An empty variable counts as one that is not set.
 */
export interface EnvironmentReader {
  /** Required unless there is a default. */
  string<T extends string = string>(name: string, options?: { default?: T; oneOf?: readonly T[] }): T;
  optionalString(name: string): string | undefined;
  /** Like `optionalString`; for values that no message may repeat. */
  optionalSecret(name: string): string | undefined;
  integer(name: string, options?: NumberOptions): number;
  /** A whole number of milliseconds, or one with a unit: `1500`, `250ms`, `30s`, `10m`, `2h`. */
  milliseconds(name: string, options?: NumberOptions): number;
  /** `true`, `false`, `1`, `0`, `yes`, `no`, `on`, `off`. */
  boolean(name: string, options?: { default?: boolean }): boolean;
  /** Separated by commas; blanks around an item and empty items do not count. */
  list(name: string, options?: { default?: readonly string[] }): string[];
  /** Made absolute from the working directory. */
  path(name: string, options?: { default?: string }): string;
  /** Notes a fault that a config finds itself, in what it read. The value is repeated unless it is undefined. */
  fault(name: string, given: string | undefined, expected: string): void;
  /** Throws `invalid_argument`, which lists every fault by the name of its variable. */
  finish(): void;
}

export function readEnvironment(env: NodeJS.ProcessEnv): EnvironmentReader {
  const faults: Fault[] = [];

  function given(name: string): string | undefined {
    const value = env[name]?.trim();
    return value === "" ? undefined : value;
  }

  function fault(name: string, value: string | undefined, expected: string): void {
    faults.push(value === undefined ? { name, expected } : { name, given: value, expected });
  }

  /** The parsed value; else the default; else a fault and the placeholder. */
  function read<T>(name: string, fallback: T | undefined, placeholder: T, form: Form<T>): T {
    const value = given(name);
    if (value === undefined) {
      if (fallback !== undefined) return fallback;
      fault(name, undefined, form.expected);
      return placeholder;
    }
    const parsed = form.parse(value);
    if (parsed !== undefined) return parsed;
    fault(name, value, form.expected);
    return placeholder;
  }

  return {
    string<T extends string = string>(name: string, options: { default?: T; oneOf?: readonly T[] } = {}): T {
      return read(name, options.default, "" as T, textForm(options.oneOf));
    },
    optionalString: given,
    optionalSecret: given,
    integer: (name, options = {}) => read(name, options.default, 0, integerForm(options)),
    milliseconds: (name, options = {}) => read(name, options.default, 0, millisecondsForm(options)),
    boolean: (name, options = {}) => read(name, options.default, false, BOOLEAN),
    list: (name, options = {}) => read(name, options.default && [...options.default], [], LIST),
    path: (name, options = {}) => read(name, options.default && absolute(options.default), "", PATH),
    fault,
    finish() {
      if (faults.length > 0)
        throw new LocalFailure("invalid_argument", messageFromFaults(faults), { kind: "configuration" });
    },
  };
}

function messageFromFaults(faults: Fault[]): string {
  const lines = faults.map(({ name, given, expected }) =>
    given === undefined
      ? `${name} is not set; expected ${expected}`
      : `${name} is ${JSON.stringify(given)}; expected ${expected}`,
  );
  return lines.join(" · ");
}

/** How a value is written; `parse` gives undefined for what is not written so. */
interface Form<T> {
  expected: string;
  parse: (text: string) => T | undefined;
}

function textForm<T extends string>(oneOf: readonly T[] | undefined): Form<T> {
  if (!oneOf) return { expected: "some text", parse: (text) => text as T };
  return { expected: `one of ${oneOf.join(", ")}`, parse: (text) => oneOf.find((word) => word === text) };
}

function integerForm({ min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER }: NumberOptions): Form<number> {
  return {
    expected: `a whole number${rangeText(min, max)}`,
    parse: (text) => (/^-?\d+$/.test(text) ? within(Number(text), min, max) : undefined),
  };
}

const MILLISECONDS_BY_UNIT: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

function millisecondsForm({ min = 0, max = Number.MAX_SAFE_INTEGER }: NumberOptions): Form<number> {
  return {
    expected: `milliseconds, or a time like 30s or 10m${rangeText(min, max)}`,
    parse(text) {
      const [, digits, unit = "ms"] = /^(\d+)\s*(ms|s|m|h)?$/.exec(text) ?? [];
      return digits === undefined ? undefined : within(Number(digits) * MILLISECONDS_BY_UNIT[unit]!, min, max);
    },
  };
}

function within(value: number, min: number, max: number): number | undefined {
  return value >= min && value <= max ? value : undefined;
}

function rangeText(min: number, max: number): string {
  const from = min > Number.MIN_SAFE_INTEGER ? ` from ${min}` : "";
  const to = max < Number.MAX_SAFE_INTEGER ? ` up to ${max}` : "";
  return from + to;
}

const BOOLEAN: Form<boolean> = {
  expected: "true or false",
  parse(text) {
    if (/^(true|1|yes|on)$/i.test(text)) return true;
    return /^(false|0|no|off)$/i.test(text) ? false : undefined;
  },
};

const LIST: Form<string[]> = {
  expected: "a list separated by commas",
  parse: (text) =>
    text
      .split(",")
      .map((item) => item.trim())
      .filter((item) => item !== ""),
};

const PATH: Form<string> = { expected: "a path", parse: absolute };

function absolute(path: string): string {
  return isAbsolute(path) ? path : resolve(path);
}
