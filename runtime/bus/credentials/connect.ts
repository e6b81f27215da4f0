import { type ConnectionOptions, checkServerIdentity, type PeerCertificate } from "node:tls";
import { connect, type NatsConnection, type NodeConnectionOptions } from "@nats-io/transport-node";
import { type BusLogin, inboxPrefixOf, publicKeyOf, signNonce } from "./login.ts";

export interface ConnectOptions {
  /** One server, or several of a cluster with commas between. */
  readonly url: string;
  readonly login: BusLogin;
  /** What the server's monitoring shows. */
  readonly name: string;
}

/** One attempt. A connection that is open comes back to its server for as long as it is not closed. */
export function connectOnce({ url, login, name }: ConnectOptions): Promise<NatsConnection> {
  const servers = url.split(",").map((server) => server.trim());
  return connect({
    servers,
    // The client takes the scheme for a name alone: what asks for TLS here is what refuses a server without.
    ...(url.includes("tls://") && { tls: tlsOptions(servers) }),
    name,
    authenticator: (nonce) => ({ nkey: publicKeyOf(login), sig: nonce === undefined ? "" : signNonce(login, nonce) }),
    inboxPrefix: inboxPrefixOf(login),
    timeout: 2_000,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
    reconnectJitter: 20,
    ignoreAuthErrorAbort: true, // a server that comes back half configured must not end the bus for ever
    pingInterval: 2_000, // with two pings out, a server that fell silent is left after at most six seconds
    maxPingOut: 2,
    noAsyncTraces: true,
  });
}

/** For a server that is named by its address the client gives no name, and Node asks for `localhost`: its address is asked for instead. */
function tlsOptions(
  servers: readonly string[],
): NodeConnectionOptions["tls"] & Pick<ConnectionOptions, "checkServerIdentity"> {
  const hosts = servers.map((server) => URL.parse(server)?.hostname.replace(/^\[|\]$/g, "") ?? "");
  const checkIdentity = (name: string, certificate: PeerCertificate): Error | undefined => {
    const faults = (name === "localhost" ? hosts : [name]).map((host) => checkServerIdentity(host, certificate));
    return faults.includes(undefined) ? undefined : faults[0];
  };
  return { checkServerIdentity: checkIdentity };
}
