import type { ConnectRouter } from "@connectrpc/connect";
import { createMethodImplSpec, createServiceImplSpec, type MethodImplSpec } from "@connectrpc/connect";

/**
 * A Connect router that only remembers: the implementations as such, not wrapped into handlers of HTTP requests.
 * Methods that a service leaves out are answered `unimplemented` by Connect's own implementation.
 */
export function methodsFromRoutes(routes: (router: ConnectRouter) => void): MethodImplSpec[] {
  const methods: MethodImplSpec[] = [];
  const router: ConnectRouter = {
    handlers: [],
    service(service, implementation) {
      methods.push(...Object.values(createServiceImplSpec(service, implementation).methods));
      return router;
    },
    rpc(method, implementation) {
      methods.push(createMethodImplSpec(method, implementation));
      return router;
    },
  };
  routes(router);
  return methods;
}
