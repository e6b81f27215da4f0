import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { configsFromDeclarations } from "./declared-config.ts";

export interface RemoveStoresOptions {
  url: string;
  user?: string | undefined;
  password?: string | undefined;
}

/** Deletes all that the suite has stored on a server, of whatever format; gives the names of what was there. */
export async function removeStores({ url, user, password }: RemoveStoresOptions): Promise<string[]> {
  const connection = await connect({ servers: url, ...(user !== undefined && { user, pass: password ?? "" }) });
  try {
    const manager = await jetstreamManager(connection);
    const ours = new Set(configsFromDeclarations(1).map(({ name }) => name));
    const found = (await Array.fromAsync(manager.streams.names())).filter((name) => ours.has(name));
    for (const name of found) await manager.streams.delete(name);
    return found;
  } finally {
    await connection.close();
  }
}
