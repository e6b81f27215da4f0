import { isIP } from "node:net";
import { buildConnector } from "undici";
import type { AddressGuard, ResolvedAddress } from "./address-guard.ts";

/** Connects to the first of the judged addresses that takes the connection. */
export function guardedConnector(guard: AddressGuard): buildConnector.connector {
  const connect = buildConnector({ timeout: 10_000 });
  return (target, callback) => {
    const port = Number(target.port) || (target.protocol === "https:" ? 443 : 80);
    const name = target.servername || target.hostname;
    const servername = isIP(name) === 0 && { servername: name };
    const connectTo = ([first, ...others]: ResolvedAddress[]) =>
      connect({ ...target, hostname: first!.address, ...servername }, (...ended) => {
        if (ended[0] !== null && others.length > 0) connectTo(others);
        else callback(...ended);
      });
    guard.resolve(target.hostname, port).then(connectTo, (error: Error) => callback(error, null));
  };
}
