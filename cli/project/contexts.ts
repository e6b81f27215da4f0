// Contexts: the addresses and keys of suites elsewhere, by names, as a user keeps them.
//
//   ~/.config/toolbus/contexts.json   (`toolbus` in XDG_CONFIG_HOME), mode 0600
//
// A context holds for the commands that are told it, by --context or TOOLBUS_CONTEXT. There is no current one: what reaches the suite
// of a project today does not reach another one tomorrow.

import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { writePrivateFile } from "#runtime/bus/credentials/files/private-file.ts";
import { userConfig } from "#runtime/config/places.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { LocalFailure } from "#runtime/failure/local-failure.ts";
import { UsageFault } from "../faults/fault.ts";
import { invocation } from "../faults/invocation.ts";

const contextSchema = z.strictObject({ url: z.url({ protocol: /^https?$/ }), apiKey: z.string().min(1).optional() });
const fileSchema = z.record(z.string(), contextSchema);

export type Context = z.infer<typeof contextSchema>;

function path(): string {
  return `${userConfig()}/contexts.json`;
}

/** By name. Throws `failed_precondition` for a file that others may read, or that holds something else. */
export function readContexts(): Map<string, Context> {
  if (!existsSync(path())) return new Map();
  if (process.platform !== "win32" && (statSync(path()).mode & 0o077) !== 0)
    refuse(`others can read the keys in ${path()}: chmod 600 it`);
  try {
    const contexts = fileSchema.parse(JSON.parse(readFileSync(path(), "utf8")));
    return new Map(Object.entries(contexts).sort(([one], [other]) => one.localeCompare(other)));
  } catch (cause) {
    const fault = cause instanceof z.ZodError ? z.prettifyError(cause) : messageFromUnknown(cause);
    return refuse(`${path()} holds no contexts: ${fault}`);
  }
}

/** Throws a `UsageFault` for what could not be read again. */
export async function writeContexts(contexts: ReadonlyMap<string, Context>): Promise<void> {
  const { error } = fileSchema.safeParse(Object.fromEntries(contexts));
  if (error !== undefined) throw new UsageFault(`that is no context: ${z.prettifyError(error)}`);
  mkdirSync(dirname(path()), { recursive: true, mode: 0o700 });
  await writePrivateFile(path(), `${JSON.stringify(Object.fromEntries(contexts), undefined, 2)}\n`);
}

/** Throws a `UsageFault` where there is none of the name. */
export function contextNamed(name: string): Context {
  const contexts = readContexts();
  const known = contexts.size === 0 ? "there is none yet" : `known: ${[...contexts.keys()].join(", ")}`;
  const advice = `"${invocation} context set ${name} --url URL" makes one`;
  const found = contexts.get(name);
  if (found === undefined) throw new UsageFault(`there is no context ${JSON.stringify(name)}: ${known}; ${advice}`);
  return found;
}

function refuse(text: string): never {
  throw new LocalFailure("failed_precondition", text, { kind: "contexts_unusable" });
}
