import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageFromUnknown } from "../../failure/failure.ts";
import { LocalFailure } from "../../failure/local-failure.ts";

/** A directory whose files are variables: the name of each, and its content without the last line end. */
const SECRETS_DIRECTORY = "TOOLBUS_SECRETS_DIRECTORY";

/**
 * The environment with the variables that the files of `TOOLBUS_SECRETS_DIRECTORY` hold, as Docker and Kubernetes mount secrets.
 * A variable that is set already wins. Throws `invalid_argument` for a directory or file that cannot be read.
 */
export function withSecretFiles(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const directory = env[SECRETS_DIRECTORY]?.trim();
  return directory ? { ...variablesFromFiles(directory), ...withoutBlanks(env) } : env;
}

function variablesFromFiles(directory: string): Record<string, string> {
  try {
    // Kubernetes keeps the versions of a secret in directories whose names begin with two dots.
    const names = readdirSync(directory).filter((name) => /^\w+$/.test(name));
    const files = names.filter((name) => statSync(join(directory, name)).isFile());
    return Object.fromEntries(
      files.map((name) => [name, readFileSync(join(directory, name), "utf8").replace(/\r?\n$/, "")]),
    );
  } catch (cause) {
    const message = `${SECRETS_DIRECTORY} is ${JSON.stringify(directory)}, which cannot be read: ${messageFromUnknown(cause)}`;
    throw new LocalFailure("invalid_argument", message, { kind: "configuration", cause });
  }
}

/** An empty variable counts as one that is not set. */
function withoutBlanks(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value?.trim()));
}
