import { jetstreamManager } from "@nats-io/jetstream";
import { configsFromDeclarations } from "../declarations/declared-config.ts";
import { connectOnce } from "./connect.ts";
import type { BusLogin } from "./login.ts";

/** Deletes all that the suite has stored on a server, of whatever format; gives the names of what was there. */
export async function removeStores({ url, login }: { url: string; login: BusLogin }): Promise<string[]> {
  const connection = await connectOnce({ url, login, name: "reset" });
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
