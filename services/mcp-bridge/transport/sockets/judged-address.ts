import type { LookupFunction } from "node:net";
import type { AddressGuard } from "#runtime/http/address-guard.ts";

/**
 * How a socket finds its host: only by the addresses that the guard has judged, so that a name which resolves differently a second
 * time gains nothing. Rejects when it refuses one. Without a guard, as the system does.
 */
export async function judgedAddress(
  guard: AddressGuard | undefined,
  host: string,
  port: number,
): Promise<{ lookup?: LookupFunction }> {
  if (guard === undefined) return {};
  const addresses = await guard.resolve(host, port);
  const [first] = addresses;
  return {
    lookup: (_host, { all }, told) =>
      all ? told(null, addresses) : told(null, first?.address ?? "", first?.family ?? 4),
  };
}
