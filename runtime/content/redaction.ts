/** Short values would strike out half of every log; a secret worth the name is longer. */
const MIN_LENGTH = 4;

/**
 * Replaces the values of secrets in texts that people read: logs, error messages, the tail of stderr. A value of several
 * lines is looked for line by line, and also in the form that it has inside of JSON.
 */
export function createRedaction(secrets: ReadonlyMap<string, string>): (text: string) => string {
  const nameByText = new Map<string, string>();
  for (const [name, value] of secrets) {
    for (const line of value.split(/\r?\n/)) {
      for (const form of [line.trim(), JSON.stringify(line.trim()).slice(1, -1)]) {
        if (form.length >= MIN_LENGTH) nameByText.set(form, name);
      }
    }
  }
  if (nameByText.size === 0) return (text) => text;
  const longestFirst = [...nameByText.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.map((text) => RegExp.escape(text)).join("|"), "g");
  return (text) => text.replace(pattern, (found) => `[secret ${nameByText.get(found)}]`);
}
