import {
  type ConnectRouter,
  type ConnectRouterOptions,
  createMethodImplSpec,
  createServiceImplSpec,
  type Interceptor,
  type MethodImplSpec,
} from "@connectrpc/connect";

export interface RecordedMethod {
  readonly spec: MethodImplSpec;
  readonly interceptors: Interceptor[];
  /** What was given with the registration, in place of what holds for all. */
  readonly options: Partial<ConnectRouterOptions>;
}

/**
 * A Connect router that only remembers: the implementations as such, not wrapped into handlers of HTTP requests. As in
 * Connect, methods that a service leaves out are answered `unimplemented`, and interceptors given with a service stand in place
 * of the router's.
 */
export function methodsFromRoutes(
  routes: (router: ConnectRouter) => void,
  interceptors: Interceptor[],
): RecordedMethod[] {
  const methods: RecordedMethod[] = [];
  const record = (spec: MethodImplSpec, options: Partial<ConnectRouterOptions> = {}) => {
    methods.push({ spec, interceptors: options.interceptors ?? interceptors, options });
  };
  const router: ConnectRouter = {
    handlers: [],
    service(service, implementation, options) {
      const { methods: specs } = createServiceImplSpec(service, implementation);
      for (const spec of Object.values(specs)) record(spec, options);
      return router;
    },
    rpc(method, implementation, options) {
      record(createMethodImplSpec(method, implementation), options);
      return router;
    },
  };
  routes(router);
  return methods;
}
