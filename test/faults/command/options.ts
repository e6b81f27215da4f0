/** An option of a fault run, which takes a value. */
export interface FaultOption<Value> {
  /** What stands for the value in the help. */
  readonly placeholder: string;
  readonly means: string;
  /** Reads the values that were given, none or some; throws what is wrong with them. */
  readonly read: (given: readonly string[]) => Value;
}

/** A number from 0 on; where none is given and none stands for it, undefined. */
export function number<Default extends number | undefined>(
  means: string,
  byDefault?: Default,
): FaultOption<number | Default> {
  return {
    placeholder: "N",
    means: byDefault === undefined ? means : `${means} (${byDefault})`,
    read(given) {
      if (given.length === 0) return byDefault as Default;
      const value = Number(given.at(-1));
      if (value >= 0) return value;
      throw new Error("is a number");
    },
  };
}

export function word(placeholder: string, means: string): FaultOption<string | undefined> {
  return { placeholder, means, read: (given) => given.at(-1) };
}

export function words(placeholder: string, means: string): FaultOption<readonly string[]> {
  return { placeholder, means: `${means}; may be given more than once`, read: (given) => given };
}

/** What stands under the name that is given. */
export function named<Value>(
  placeholder: string,
  means: string,
  values: Readonly<Record<string, Value>>,
): FaultOption<Value | undefined> {
  return {
    placeholder,
    means,
    read(given) {
      const name = given.at(-1);
      if (name === undefined || Object.hasOwn(values, name)) return values[name ?? ""];
      throw new Error(`is one of ${Object.keys(values).join(", ")}`);
    },
  };
}
