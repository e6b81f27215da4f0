import type { PathTaker } from "#runtime/rpc/http/messages.ts";

/**
 * Paths for clients that speak no RPC. A route is such a path, in which `{name}` stands for one segment: spans and metrics tell the
 * route of a request, so that ids make no series of their own.
 */
export interface Door {
  /** The first that fits a path is its route. */
  readonly routes: readonly string[];
  readonly takes: PathTaker;
}

/** What fits a route; its groups are the segments that the route names. */
export function patternOfRoute(route: string): RegExp {
  return new RegExp(`^${route.replaceAll(/\{\w+\}/g, "([^/]+)")}$`);
}
