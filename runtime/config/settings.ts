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

/** The settings that a config declares, in the order of reading. */
export function settingsOf(readConfig: (env: NodeJS.ProcessEnv) => unknown): Setting[] {
  const settings: Setting[] = [];
  listener = (setting) => settings.push(setting);
  try {
    readConfig({});
  } finally {
    listener = undefined;
  }
  return settings;
}
