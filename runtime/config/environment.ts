import { LocalFailure } from "../failure/local-failure.ts";
import {
  absolute,
  BOOLEAN,
  type Bounds,
  type Form,
  integerForm,
  LIST,
  millisecondsForm,
  PATH,
  textForm,
} from "./forms.ts";
import { type Declaration, declareSetting } from "./settings.ts";

interface Fault {
  name: string;
  /** Absent when nothing was given. */
  given?: string;
  expected: string;
}

interface NumberDeclaration extends Declaration, Bounds {
  default?: number;
}

/**
 * Reads the variables of one process. A fault does not stop the reading: the value returned then is a placeholder, and
 * `finish` refuses with every fault at once. An empty variable counts as one that is not set. Each reading declares what
 * the variable means: docs/settings.md is made of that.
 */
export interface EnvironmentReader {
  /** Required unless there is a default. */
  string<T extends string = string>(
    name: string,
    options: Declaration & { default?: NoInfer<T>; oneOf?: readonly T[] },
  ): T;
  optionalString(name: string, options: Declaration): string | undefined;
  /** Like `optionalString`; for values that no message may repeat. */
  optionalSecret(name: string, options: Declaration): string | undefined;
  integer(name: string, options: NumberDeclaration & { unit?: string }): number;
  /** A whole number of milliseconds, or one with a unit: `1500`, `250ms`, `30s`, `10m`, `2h`. */
  milliseconds(name: string, options: NumberDeclaration): number;
  /** `true`, `false`, `1`, `0`, `yes`, `no`, `on`, `off`. */
  boolean(name: string, options: Declaration & { default?: boolean }): boolean;
  /** Separated by commas; blanks around an item and empty items do not count. */
  list(name: string, options: Declaration & { default?: readonly string[] }): string[];
  /** Made absolute from the working directory. */
  path(name: string, options: Declaration & { default?: string }): string;
  /** The values of all variables that begin with a prefix, by the rest of their name, which the placeholder stands for. */
  prefixed(prefix: string, options: Declaration & { placeholder: string }): Map<string, string>;
  /** All variables with such a name, for programs and libraries that the service runs; they are no settings of its own. */
  inherited(isWanted: (name: string) => boolean): Record<string, string>;
  /** Whether it is set to nothing, which is no decision where the decision matters. */
  isBlank(name: string): boolean;
  /** Notes a fault that a config finds itself, in what it read. The value is repeated unless it is undefined. */
  fault(name: string, given: string | undefined, expected: string): void;
  /** Likewise, for a value that no message may repeat. */
  faultOfSecret(name: string, expected: string): void;
  /** Throws `invalid_argument`, which lists every fault by the name of its variable. */
  finish(): void;
}

/** How to read one variable. */
interface Reading<T> {
  form: Form<T>;
  declaration: Declaration & { default?: T | undefined };
  /** Returned beside a fault. */
  placeholder: T;
}

export function readEnvironment(env: NodeJS.ProcessEnv): EnvironmentReader {
  const faults: Fault[] = [];

  function given(name: string): string | undefined {
    const value = env[name]?.trim();
    return value === "" ? undefined : value;
  }

  /** No other variable is read: a service is given what it reads (`variablesRead`). */
  function entriesWhere(isWanted: (name: string) => boolean): [string, string][] {
    const names = Object.keys(env).filter(isWanted);
    return names.map((name) => [name, env[name] ?? ""] as [string, string]).filter(([, value]) => value !== "");
  }

  function fault(name: string, value: string | undefined, expected: string): void {
    faults.push(value === undefined ? { name, expected } : { name, given: value, expected });
  }

  /** The parsed value; else the default; else a fault and the placeholder. */
  function read<T>(name: string, { form, declaration, placeholder }: Reading<T>): T {
    const fallback = declaration.default;
    declareSetting({
      ...settingFrom(name, declaration, form.name),
      ...(fallback !== undefined && declaration.whenUnset === undefined && { fallback: form.write(fallback) }),
    });
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

  function optional(name: string, declaration: Declaration): string | undefined {
    declareSetting(settingFrom(name, declaration, "text"));
    return given(name);
  }

  return {
    string: <T extends string = string>(
      name: string,
      declaration: Declaration & { default?: NoInfer<T>; oneOf?: readonly T[] },
    ) => read(name, { form: textForm(declaration.oneOf), declaration, placeholder: "" as T }),
    optionalString: optional,
    optionalSecret: optional,
    integer: (name, declaration) => read(name, { form: integerForm(declaration), declaration, placeholder: 0 }),
    milliseconds: (name, declaration) =>
      read(name, { form: millisecondsForm(declaration), declaration, placeholder: 0 }),
    boolean: (name, declaration) => read(name, { form: BOOLEAN, declaration, placeholder: false }),
    list: (name, declaration) => {
      const fallback = declaration.default && [...declaration.default];
      return read(name, { form: LIST, declaration: { ...declaration, default: fallback }, placeholder: [] });
    },
    path: (name, declaration) => absolute(read(name, { form: PATH, declaration, placeholder: "" })),
    prefixed(prefix, { placeholder, ...declaration }) {
      declareSetting(settingFrom(prefix + placeholder, declaration, "text"));
      const named = entriesWhere((name) => name.startsWith(prefix));
      return new Map(named.map(([name, value]) => [name.slice(prefix.length), value]));
    },
    inherited: (isWanted) => Object.fromEntries(entriesWhere(isWanted)),
    isBlank: (name) => env[name] !== undefined && given(name) === undefined,
    fault,
    faultOfSecret: (name, expected) => fault(name, "a value that is not shown here", expected),
    finish() {
      if (faults.length > 0)
        throw new LocalFailure("invalid_argument", messageFromFaults(faults), { kind: "configuration" });
    },
  };
}

function settingFrom(name: string, { meaning, form, whenUnset }: Declaration, formName: string) {
  return { name, meaning, form: form ?? formName, ...(whenUnset !== undefined && { whenUnset }) };
}

function messageFromFaults(faults: Fault[]): string {
  const lines = faults.map(({ name, given, expected }) =>
    given === undefined
      ? `${name} is not set; expected ${expected}`
      : `${name} is ${JSON.stringify(given)}; expected ${expected}`,
  );
  return lines.join(" · ");
}
