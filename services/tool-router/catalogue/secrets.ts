/** Where a header's value names a secret. */
export const SECRET = /\$\{secret:([A-Za-z0-9_]+)\}/g;

/** The value with its secrets; throws for one that is not set. */
export function withSecrets(template: string, secrets: ReadonlyMap<string, string>): string {
  return template.replace(SECRET, (_, name: string) => {
    const secret = secrets.get(name);
    if (secret === undefined)
      throw new Error(`the secret ${name} is not set: give TOOLBUS_SECRET_${name} to the tool router`);
    return secret;
  });
}
