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

export interface Route {
  readonly method: string;
  readonly route: string;
}

/** Finds the routes of a door by their method and path. */
export function routeTable<R extends Route>(routes: readonly R[]) {
  const served = routes.map((route) => ({ route, pattern: patternOfRoute(route.route) }));
  return {
    /** The first that fits, with the segment that it names; empty where it names none. */
    find(method: string | undefined, path: string): { readonly route: R; readonly segment: string } | undefined {
      const found = served.find(({ route, pattern }) => route.method === method && pattern.test(path));
      return found && { route: found.route, segment: found.pattern.exec(path)?.[1] ?? "" };
    },
    /** By which methods a path is served. */
    methodsOf: (path: string): string[] =>
      served.filter(({ pattern }) => pattern.test(path)).map(({ route }) => route.method),
  };
}

/** What fits a route; its groups are the segments that the route names. */
export function patternOfRoute(route: string): RegExp {
  return new RegExp(`^${route.replaceAll(/\{\w+\}/g, "([^/]+)")}$`);
}
