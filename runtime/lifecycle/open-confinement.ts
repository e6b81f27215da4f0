import { join } from "node:path";
import { findBwrap } from "../bus/nats-server/find/find-bwrap.ts";
import { getOrInsertComputed } from "../collections/get-or-insert-computed.ts";
import type { ConfinementConfig } from "../config/confinement.ts";
import { packagesDirectory, programDirectory, userCache } from "../config/places.ts";
import { messageFromUnknown } from "../failure/failure.ts";
import { LocalFailure } from "../failure/local-failure.ts";
import { openChildProcess } from "./child-process/child-process.ts";
import type { Confinement } from "./child-process/confinement.ts";
import { textFromExit } from "./child-process/exit.ts";
import type { Logger } from "./logger.ts";

/** Whether this machine can confine children, and if not, why not. */
export type Possible =
  | { readonly kind: "confined"; readonly confinement: Confinement }
  | { readonly kind: "unconfined"; readonly reason: string };

/** A machine without a registry in reach is not waited for longer. */
const FETCH_MS = 30_000;
/** What runs in the services themselves, or says what does: a tool that wrote there would be one of them after the next start. */
const PROGRAMS = ["cli", "gen", "runtime", "sdk", "services", "package.json", ".npmrc"];

/** How children of a service are confined; undefined when they are not, which the log says. Throws when they must be. */
export async function openConfinement(
  config: ConfinementConfig,
  logger: Pick<Logger, "warn">,
): Promise<Confinement | undefined> {
  const possible = await tryConfinement(config);
  if (possible.kind === "confined") return possible.confinement;
  const message = `tools run unconfined, with all rights of this service's user: ${possible.reason}`;
  if (config.mode === "required") throw new LocalFailure("failed_precondition", message, { kind: "unconfined" });
  logger.warn({ kind: "unconfined" }, message);
  return undefined;
}

const tried = new Map<string, Promise<Possible>>();

/** Confines a program that does nothing, to see whether it can be done; once in a process, whose services ask for the same. */
export function tryConfinement(config: ConfinementConfig): Promise<Possible> {
  return getOrInsertComputed(tried, JSON.stringify(config), () => confineNothing(config));
}

async function confineNothing(config: ConfinementConfig): Promise<Possible> {
  if (config.mode === "off") return { kind: "unconfined", reason: "TOOLBUS_CONFINEMENT is off" };
  try {
    const program = config.program ?? (await findBwrap({ signal: AbortSignal.timeout(FETCH_MS) }));
    const programs = PROGRAMS.map((name) => join(programDirectory, name));
    const readOnlyPaths = [...programs, process.execPath, packagesDirectory, userCache(), ...config.readOnlyPaths];
    const confinement = { program, privatePaths: config.privatePaths, readOnlyPaths };
    await using child = await openChildProcess({ command: "/bin/sh", args: ["-c", ":"], cwd: "/", confinement });
    child.endInput();
    const exit = await child.exited;
    if (exit.code === 0) return { kind: "confined", confinement };
    return { kind: "unconfined", reason: `bwrap does not work here: it ${textFromExit(exit)}` };
  } catch (error) {
    return { kind: "unconfined", reason: `bwrap (bubblewrap) cannot be used: ${messageFromUnknown(error)}` };
  }
}
