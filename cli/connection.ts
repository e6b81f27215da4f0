import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { GlobalOptions } from "./global-options.ts";

export { type GlobalOptions, globalOptionsOf } from "./global-options.ts";

/** Where the suite is and who asks: the options that every command knows. */
export interface Connection {
  readonly url: string;
  client<S extends DescService>(service: S): Client<S>;
}

/** Speaks Connect with the gateway. Nothing is sent before the first call. */
export function openConnection({ url, apiKey }: Pick<GlobalOptions, "url" | "apiKey">): Connection {
  const authorize: Interceptor = (next) => (request) => {
    if (apiKey !== undefined) request.header.set("authorization", `Bearer ${apiKey}`);
    return next(request);
  };
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "2", interceptors: [authorize] });
  return { url, client: (service) => createClient(service, transport) };
}
