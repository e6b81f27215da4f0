import type { Endpoint, NamedEndpointStats } from "@nats-io/services";

export type EndpointNumbers = Partial<NamedEndpointStats>;

/**
 * Writes numbers into the library's endpoint, to be shown by `nats micro stats`. The library measures how long a handler takes to
 * return, which for an asynchronous one says nothing.
 *
 * Made for @nats-io/services 3.0.0-25.
 */
export function writeEndpointNumbers(endpoint: Endpoint, numbers: EndpointNumbers): void {
  if ("stats" in endpoint) Object.assign(endpoint.stats as NamedEndpointStats, numbers);
}
