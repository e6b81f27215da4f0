/**
 * What a service can be told by its environment, as its config declares it while reading: the source of docs/settings.md.
 */

export interface Setting {
  /** Of the variable; a family of them has a placeholder in it, as in `TOOLBUS_SECRET_<NAME>`. */
  readonly name: string;
  /** What it does, as a sentence or a part of one, for operators. */
  readonly meaning: string;
  /** How a value is written: `time`, `bytes, at least 1024`. */
  readonly form: string;
  /** The default as an operator would write it; absent if there is none. */
  readonly fallback?: string;
  /** What is done instead of taking a default. */
  readonly whenUnset?: string;
}

/** What every declaration of a setting says. */
export interface Declaration {
  meaning: string;
  /** How a value is written, where the reader's own word for it says too little. */
  form?: string;
  /** What is done when it is not set, where there is no default that could be written down. */
  whenUnset?: string;
}

let listener: ((setting: Setting) => void) | undefined;

/** Called by the reader for each variable that a config asks for. */
export function declareSetting(setting: Setting): void {
  listener?.(setting);
}

/** Of an environment, what a config reads; what it refuses is told by the service that reads it. */
export function variablesRead(
  readConfig: (env: NodeJS.ProcessEnv) => unknown,
  env: NodeJS.ProcessEnv,
): NodeJS.ProcessEnv {
  const read: NodeJS.ProcessEnv = {};
  const recording = new Proxy(env, {
    get(target, name) {
      if (typeof name !== "string" || target[name] === undefined) return undefined;
      read[name] = target[name];
      return target[name];
    },
  });
  try {
    readConfig(recording);
  } catch {
    // the service reads the same, and says what is wrong with it
  }
  return read;
}

/** The settings that a config declares, in the order of reading. */
export function settingsOf(readConfig: (env: NodeJS.ProcessEnv) => unknown): Setting[] {
  const settings: Setting[] = [];
  listener = (setting) => settings.push(setting);
  try {
    readConfig({});
  } catch {
    // some must be set; all are declared by then
  } finally {
    listener = undefined;
  }
  return settings;
}
