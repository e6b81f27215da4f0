import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { isErrno } from "../failure/errno.ts";
import { messageFromUnknown } from "../failure/failure.ts";
import { LocalFailure } from "../failure/local-failure.ts";

/** Throws `failed_precondition` when the port is taken, `unavailable` when it cannot be had otherwise. */
export async function listen(server: Server, host: string, port: number): Promise<AddressInfo> {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    const isTaken = isErrno(error, "EADDRINUSE");
    const why = isTaken ? "the port is taken by another process" : messageFromUnknown(error);
    const code = isTaken ? "failed_precondition" : "unavailable";
    throw new LocalFailure(code, `cannot listen on ${host}:${port}: ${why}`, {
      kind: "port_not_listened",
      cause: error,
    });
  }
  return server.address() as AddressInfo;
}
