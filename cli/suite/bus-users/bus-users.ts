import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { BusUser } from "#runtime/bus/credentials/permissions.ts";
import { moduleBeside } from "#runtime/config/places.ts";

const program = fileURLToPath(moduleBeside(import.meta, "bus-users-program"));

/**
 * The users of a bus. They follow from the whole contract, which this process needs for nothing else: another one reads it, and
 * its 40 MB go with it.
 */
export async function busUsersFromProcess(logins: readonly string[]): Promise<readonly BusUser[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [...process.execArgv, program, ...logins]);
  return JSON.parse(stdout) as BusUser[];
}
