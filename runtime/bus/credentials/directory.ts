// The credentials of a suite, as files. Each is a secret except for those that are marked.
//
//   <name>.nk            the seed of a service, or of `admin`
//   provider.<name>.nk   the seed of a third party
//   users.conf           (public) what nats-server includes in its `authorization`
//   trust.json           (public) whose word for whom counts: see trust-list.ts
//
// A seed is made once and stays: to change a key, delete its file, and write the directory anew.

import { link, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { isErrno, unlessAbsent } from "../../failure/errno.ts";
import { LocalFailure } from "../../failure/local-failure.ts";
import { writePrivateFile } from "./files/private-file.ts";
import { textOfUsers } from "./files/users-file.ts";
import { ADMIN, type BusLogin, publicKeyOf } from "./login.ts";
import { createSeed } from "./nkey/nkey.ts";
import type { BusUser } from "./permissions.ts";
import { pathOfTrustList, textOfTrustList } from "./trust/trust-list.ts";

const usersFile = "users.conf";
const suffix = ".nk";

/** Who may sign in beside `admin`, given the logins whose keys are in the directory. */
export type UsersOf = (logins: readonly string[]) => readonly BusUser[] | Promise<readonly BusUser[]>;

/** Makes the keys that are missing, and writes the users file anew, which is for `authorization { include … }`. */
export async function writeCredentials(directory: string, usersOf: UsersOf) {
  const path = resolve(directory);
  await mkdir(path, { recursive: true, mode: 0o700 });
  const users: BusUser[] = [{ name: ADMIN, speaksFor: "everybody" }, ...(await usersOf(await listLogins(path)))];
  const known = await Promise.all(
    users.map(async (user) => ({ ...user, publicKey: publicKeyOf(await readOrCreateLogin(path, user.name)) })),
  );
  const file = join(path, usersFile);
  await writePrivateFile(file, textOfUsers(known));
  const trusted = known.flatMap(({ name, publicKey, speaksFor }) =>
    speaksFor ? [{ name, publicKey, speaksFor }] : [],
  );
  await writePrivateFile(pathOfTrustList(path), textOfTrustList(trusted));
  return { path, usersFile: file };
}

async function listLogins(directory: string): Promise<string[]> {
  const files = (await readdir(directory)).sort();
  return files.filter((file) => file.endsWith(suffix)).map((file) => file.slice(0, -suffix.length));
}

/** Throws `failed_precondition`, with the way out, where there is no seed of that name. */
export async function readLogin(directory: string, name: string): Promise<BusLogin> {
  const path = pathOfSeed(directory, name);
  const seed = await readSeed(path);
  if (seed) return { name, seed };
  const advice =
    "`toolbus up` and `toolbus bus credentials --out DIR` write keys; TOOLBUS_BUS_CREDENTIALS names their directory";
  throw new LocalFailure("failed_precondition", `there is no key of ${name} at ${path}: ${advice}`, {
    kind: "bus_credentials_missing",
  });
}

export function pathOfSeed(directory: string, name: string): string {
  return join(resolve(directory), `${name}${suffix}`);
}

async function readOrCreateLogin(directory: string, name: string): Promise<BusLogin> {
  const path = pathOfSeed(directory, name);
  const known = await readSeed(path);
  if (known) return { name, seed: known };
  if (known === "") await rm(path); // it is from a start that the machine did not survive
  const draft = `${path}.${process.pid}`;
  try {
    await writeFile(draft, `${createSeed()}\n`, { mode: 0o600 });
    await link(draft, path); // whole or not at all
  } catch (error) {
    if (!isErrno(error, "EEXIST")) throw error; // another process was quicker: its key counts
  } finally {
    await rm(draft, { force: true });
  }
  return await readLogin(directory, name);
}

async function readSeed(path: string): Promise<string | undefined> {
  return (await readFile(path, "utf8").catch(unlessAbsent))?.trim();
}
