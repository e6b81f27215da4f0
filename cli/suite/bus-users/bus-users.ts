import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ADMIN } from "#runtime/bus/credentials/login.ts";
import type { BusUser } from "#runtime/bus/credentials/permissions.ts";
import { moduleBeside } from "#runtime/config/places.ts";
import { unlessAbsent } from "#runtime/failure/errno.ts";

const program = fileURLToPath(moduleBeside(import.meta, "bus-users-program"));

/** What the program says where there are no third parties. The package has it; in a clone, the contract may change at any time. */
const packed = new URL("bus-users.json", import.meta.url);

/**
 * The users of a bus. They follow from the whole contract, which this process needs for nothing else: where they are not known,
 * another one reads it, and its 40 MB go with it.
 */
export async function readBusUsers(logins: readonly string[]): Promise<readonly BusUser[]> {
  const known = await readPacked();
  if (known && logins.every((login) => login === ADMIN || known.some(({ name }) => name === login))) return known;
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, program, ...logins]);
  return JSON.parse(stdout) as BusUser[];
}

async function readPacked(): Promise<readonly BusUser[] | undefined> {
  const text = await readFile(packed, "utf8").catch(unlessAbsent);
  return text === undefined ? undefined : JSON.parse(text);
}
