import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Command } from "commander";

export const defaultUrl = "http://127.0.0.1:7480";

/** Where the suite is and who asks: the options that every command knows. */
export interface Connection {
  readonly url: string;
  client<S extends DescService>(service: S): Client<S>;
}

export interface GlobalOptions {
  url: string;
  apiKey?: string;
  json?: boolean;
}

export function globalOptionsOf(command: Command): GlobalOptions {
  return command.optsWithGlobals<GlobalOptions>();
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
