import { join } from "node:path";
import { pathOfSeed, writeCredentials } from "#runtime/bus/credentials/directory.ts";
import { reloadNatsServer } from "#runtime/bus/nats-server/reload.ts";
import { busUsers, loginOfProvider } from "../../../services/bus-users.ts";

export interface ProviderKey {
  /** The file of the third party's seed. */
  readonly path: string;
  /** Whether a server of this machine has heard of it. */
  readonly isKnown: boolean;
}

/** Makes a key for a third party that serves one provider, and tells the server that `up` runs in the directory of it. */
export async function issueProviderKey(credentials: string, name: string): Promise<ProviderKey> {
  const login = loginOfProvider(name);
  await writeCredentials(credentials, (logins) => busUsers([...new Set([...logins, login])]));
  const isKnown = await reloadNatsServer(join(credentials, "..", "nats"));
  return { path: pathOfSeed(credentials, login), isKnown };
}
