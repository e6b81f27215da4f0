import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/** Of those that no system gives to who connects: such a port could be taken before its server listens. */
const FIRST = 20_000;
const LAST = 32_000;

/** A port of loopback that nobody has at present. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port!;
}

/** So many, each another one. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = new Map<number, Server>();
  while (servers.size < count) {
    const port = randomInt(FIRST, LAST);
    const server = await listening(port);
    if (server !== undefined) servers.set(port, server);
  }
  await Promise.all([...servers.values()].map((server) => once(server.close(), "close")));
  return [...servers.keys()];
}

/** Undefined where somebody listens. */
async function listening(port: number): Promise<Server | undefined> {
  const server = createServer();
  try {
    await once(server.listen(port, "127.0.0.1"), "listening");
    return server;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") return undefined;
    throw error;
  }
}
