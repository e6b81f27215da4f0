import { lookup } from "node:dns/promises";
import { BlockList, isIP, isIPv6 } from "node:net";

/**
 * Keeps gateway tools outside: an address of loopback, link-local, private or otherwise special ranges is refused, unless
 * the configuration allows it. The guard judges the addresses to which a connection is made, so that a name which
 * resolves differently a second time gains nothing.
 */
export interface AddressGuard {
  /** Why a connection to this address is refused; undefined when it is allowed. */
  refusalOf(address: string, host: string, port: number): string | undefined;
  /** Resolves a host to the addresses that are allowed; fails when one of them is not. */
  resolve(host: string, port: number): Promise<ResolvedAddress[]>;
}

export interface ResolvedAddress {
  address: string;
  family: number;
}

export type ResolveHost = (host: string) => Promise<ResolvedAddress[]>;

const SPECIAL_V4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
];

/** Only global unicast (2000::/3) is outside, without the ranges in it that embed IPv4 addresses or document. */
const SPECIAL_V6 = ["::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

export interface AddressGuardOptions {
  /** The variable that says what is allowed. */
  readonly setting?: string;
  readonly resolveWith?: ResolveHost;
}

/** `allowed` holds `host:port` (a name or an address) and ranges in CIDR form. */
export function createAddressGuard(
  allowed: readonly string[],
  { setting = "the configuration", resolveWith = systemResolve }: AddressGuardOptions = {},
): AddressGuard {
  const isSpecial = rangeCheck([...SPECIAL_V4, ...SPECIAL_V6]);
  const isAllowed = rangeCheck(allowed.filter((entry) => entry.includes("/")));
  const allowedHosts = new Set(allowed.filter((entry) => !entry.includes("/")).map((entry) => entry.toLowerCase()));

  function refusalOf(address: string, host: string, port: number): string | undefined {
    const plain = unmapped(address);
    if (!isSpecial(plain) || isAllowed(plain)) return undefined;
    const bracketed = isIPv6(host) ? `[${host}]` : host;
    if (allowedHosts.has(`${bracketed.toLowerCase()}:${port}`)) return undefined;
    return `the address ${plain} of ${host} is not a public one, and ${setting} does not allow it`;
  }

  return {
    refusalOf,
    async resolve(host, port) {
      const bare = host.replace(/^\[|\]$/g, "");
      const addresses = isIP(bare) ? [{ address: bare, family: isIP(bare) }] : await resolveWith(bare);
      const refusal = addresses.map(({ address }) => refusalOf(address, host, port)).find((one) => one !== undefined);
      if (refusal !== undefined) throw new Error(refusal);
      if (addresses.length === 0) throw new Error(`the host ${host} has no address`);
      return addresses;
    },
  };
}

/** Two lists, since a range of IPv6 that holds the mapped addresses would stand for all of IPv4, too. */
function rangeCheck(ranges: readonly string[]): (address: string) => boolean {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() };
  for (const range of ranges) {
    const [network = "", prefix = ""] = range.split("/");
    lists[familyOf(network)].addSubnet(network, Number(prefix), familyOf(network));
  }
  return (address) => lists[familyOf(address)].check(address, familyOf(address));
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIPv6(address) ? "ipv6" : "ipv4";
}

/** An IPv4 address that is written as an IPv6 one (`::ffff:127.0.0.1`) is judged as what it is. */
function unmapped(address: string): string {
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address;
}

const systemResolve: ResolveHost = (host) => lookup(host, { all: true, order: "ipv4first" });
