import { openNatsServer } from "../nats-server.ts";

/** A process that owns a server, for tests that kill it. */
const server = await openNatsServer(JSON.parse(process.argv[2] ?? "{}"));
process.send?.({ pid: server.pid, port: server.port });
process.on("disconnect", () => process.exit());
