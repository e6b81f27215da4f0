import {
  type ConnectRouter,
  createMethodImplSpec,
  createServiceImplSpec,
  type Interceptor,
  type MethodImplSpec,
} from "@connectrpc/connect";

export interface RecordedMethod {
  readonly spec: MethodImplSpec;
  readonly interceptors: Interceptor[];
}

/**
 * A Connect router that only remembers: the implementations as such, not wrapped into handlers of HTTP requests. As in
 * Connect, methods that a service leaves out are answered `unimplemented`, and interceptors given with a service stand in place
 * of the router's; the other options of a registration are about HTTP.
 */
export function methodsFromRoutes(
  routes: (router: ConnectRouter) => void,
  interceptors: Interceptor[],
): RecordedMethod[] {
  const methods: RecordedMethod[] = [];
  const record = (spec: MethodImplSpec, own: Interceptor[] | undefined) => {
    methods.push({ spec, interceptors: own ?? interceptors });
  };
  const router: ConnectRouter = {
    handlers: [],
    service(service, implementation, options) {
      const { methods: specs } = createServiceImplSpec(service, implementation);
      for (const spec of Object.values(specs)) record(spec, options?.interceptors);
      return router;
    },
    rpc(method, implementation, options) {
      record(createMethodImplSpec(method, implementation), options?.interceptors);
      return router;
    },
  };
  routes(router);
  return methods;
}
