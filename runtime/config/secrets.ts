/** A secret NAME is the variable TOOLBUS_SECRET_NAME of the service that uses it. */
export const SECRET_PREFIX = "TOOLBUS_SECRET_";

/** All secrets of a process, by name. */
export function secretsFromEnvironment(env: NodeJS.ProcessEnv): Map<string, string> {
  const secrets = new Map<string, string>();
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith(SECRET_PREFIX) && value) secrets.set(name.slice(SECRET_PREFIX.length), value);
  }
  return secrets;
}
