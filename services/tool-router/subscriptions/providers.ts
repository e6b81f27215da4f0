import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import type { Provider } from "#gen/toolbus/router/v1/catalogue_pb.ts";
import { ToolProviderService } from "#gen/toolbus/tool/v1/provider_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { clientFor } from "#runtime/rpc/client.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import { deliveryOf } from "#runtime/rpc/nats/delivery.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import type { FindProvider, ProviderClient } from "../offers/provider-client.ts";

/** Clients of providers, made when they are first asked for and kept while their address stands. */
export function createProviders(
  bus: Bus,
  provider: (name: string) => Provider | undefined,
  telemetry?: Pick<Telemetry, "clientTracing">,
): FindProvider {
  const clients = new Map<string, ProviderClient>();
  // the scope names the principal; a watch outlives the request that opened it
  const interceptors = clientInterceptors({ ...(telemetry && { telemetry }), identity: () => undefined });

  function clientAt({ service, url }: Provider): Client<typeof ToolProviderService> {
    if (service !== "") return clientFor(bus, ToolProviderService, { room: service, interceptors });
    return createClient(ToolProviderService, transportTo(url));
  }

  /** `grpc://` and `grpcs://` speak gRPC, `http://` and `https://` the Connect protocol. */
  function transportTo(url: string): Transport {
    if (!url.startsWith("grpc")) return createConnectTransport({ baseUrl: url, httpVersion: "1.1", interceptors });
    return createGrpcTransport({ baseUrl: url.replace(/^grpc/, "http"), interceptors });
  }

  return (name) => {
    const found = provider(name);
    if (found === undefined) return undefined;
    const address = found.service === "" ? found.url : `bus:${found.service}`;
    const known = clients.get(name);
    if (known?.address === address) return known;
    const made = providerClient(address, clientAt(found));
    clients.set(name, made);
    return made;
  };
}

function providerClient(address: string, client: Client<typeof ToolProviderService>): ProviderClient {
  return {
    address,
    async listTools(request, { signal }) {
      try {
        return await client.listTools(request, { signal });
      } catch (error) {
        throw failureFrom(error);
      }
    },
    watchTools: (request, options) => translated(client.watchTools(request, options)),
    callTool: (request, options) => translated(client.callTool(request, options)),
    async releaseScope(scope, { signal }) {
      try {
        return (await client.releaseScope({ scope }, { signal })).closed;
      } catch (error) {
        throw failureFrom(error);
      }
    },
  };
}

async function* translated<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw failureFrom(error);
  }
}

function failureFrom(error: unknown): Failure {
  const failure = failureFromConnectError(error);
  if (deliveryOf(error) !== "NOT_SENT") return failure;
  return new Failure(failure.code, failure.message, { reason: "NOT_SENT", cause: error });
}
