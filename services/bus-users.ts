// Who may do what on the bus: each process what the table of its access says, a third party what its one provider needs.

import type { DescService } from "@bufbuild/protobuf";
import { ADMIN, inboxPrefixOf } from "#runtime/bus/credentials/login.ts";
import { type BusUser, type Permissions, PROBING, publishedToStores } from "#runtime/bus/credentials/permissions.ts";
import { refuseLocally } from "#runtime/failure/local-failure.ts";
import { ACCESS, type Access, providerService } from "./access.ts";
import { processOf } from "./processes.ts";

const table: Readonly<Record<string, Access>> = ACCESS;
const PROVIDER = "provider.";

/** The users of a bus: the suite's processes, and the third parties among the logins that there are. */
export function busUsers(logins: readonly string[] = []): BusUser[] {
  const processes = Object.entries(table).map(([name, { speaksFor = "itself" }]) => {
    return { name, permissions: permissionsOfProcess(name), speaksFor };
  });
  const thirdParties = logins.flatMap((login) => {
    const provider = providerOfLogin(login);
    return provider === undefined ? [] : [{ name: login, permissions: permissionsOfProvider(provider) }];
  });
  return [...processes, ...thirdParties];
}

/** The name that a third party signs in with. Throws `invalid_argument` for a name that is no service's on the bus. */
export function loginOfProvider(name: string): string {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
    refuseLocally(
      "invalid_argument",
      `a provider is named by 1 to 64 letters, digits, _ or -: ${JSON.stringify(name)}`,
    );
  }
  if (name in table || name === ADMIN)
    refuseLocally("invalid_argument", `${name} is a name of the suite's own: choose another`);
  return PROVIDER + name;
}

/** The name of a third party on the bus; undefined for another login. */
function providerOfLogin(login: string): string | undefined {
  return login.startsWith(PROVIDER) ? login.slice(PROVIDER.length) : undefined;
}

/** Its requests come by the suite's tool-router, and it speaks to nobody who has not asked it. */
function permissionsOfProvider(name: string): Permissions {
  return { publish: [], subscribe: [...servedBy(name), ...inboxOf(PROVIDER + name)], answersFor: "2m" };
}

function permissionsOfProcess(name: string): Permissions {
  const {
    asks,
    asksProviders = [],
    stores,
    among = [],
  } = table[name] ?? refuseLocally("not_found", `no process ${name}`);
  const publish = [
    `toolbus.rpc.${name}.>`, // its own instances
    ...asks.flatMap((service) => methodsOf(processOf(service), service)),
    ...asksProviders.flatMap((provider) => methodsOf(provider, providerService)),
    ...among,
    ...publishedToStores({ ...PROBING, ...stores }),
    ...pings(name),
    ...correspondentsOf(name).flatMap(inboxOf),
  ];
  return { publish: [...new Set(publish)], subscribe: [...servedBy(name), ...among, ...inboxOf(name)] };
}

/** Requests to a service, its instances' own subjects, cancels, and what `nats micro` asks. */
function servedBy(name: string): string[] {
  const asked = ["PING", "INFO", "STATS"].flatMap((verb) => [
    `$SRV.${verb}`,
    `$SRV.${verb}.${name}`,
    `$SRV.${verb}.${name}.*`,
  ]);
  return [`toolbus.rpc.${name}.>`, ...asked];
}

function methodsOf(process: string, service: DescService): string[] {
  return [`toolbus.rpc.${process}.${service.typeName}.*`, `toolbus.rpc.${process}.cancel`];
}

function pings(name: string): string[] {
  return [...askedBy(name), name].map((process) => `$SRV.PING.${process}`);
}

function inboxOf(name: string): string[] {
  return [`${inboxPrefixOf({ name })}.>`];
}

/** Both sides of a call send frames, so that who asks and who is asked write into each other's inbox. */
function correspondentsOf(name: string): string[] {
  const others = Object.keys(table).filter((other) => askedBy(name).has(other) || askedBy(other).has(name));
  const thirdParties = table[name]?.asksProviders?.includes("*") ? ["provider"] : [];
  return [...new Set([name, ADMIN, ...others, ...thirdParties])];
}

function askedBy(name: string): Set<string> {
  const { asks = [], asksProviders = [] } = table[name] ?? {};
  const named = asksProviders.flatMap((provider) => (provider === "*" ? Object.keys(table) : [provider]));
  return new Set([...asks.map(processOf), ...named]);
}
