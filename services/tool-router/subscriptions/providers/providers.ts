import { type Client, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import type { Provider } from "#gen/toolbus/provider/v1/provider_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { detailOf } from "#runtime/failure/error-detail.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { clientOver } from "#runtime/rpc/bus/client-over.ts";
import type { Caller } from "#runtime/rpc/identity.ts";
import { clientInterceptors } from "#runtime/rpc/interceptors.ts";
import { deliveryOf } from "#runtime/rpc/nats/call/delivery.ts";
import type { Telemetry } from "#runtime/telemetry/telemetry.ts";
import { clientFor } from "../../../clients.ts";
import type { FindProvider, ProviderClient } from "../../sessions/offers/provider-client.ts";
import { createKeepalive, type Keepalive } from "./keepalive.ts";

const MAX_MESSAGE_BYTES = 64 * 2 ** 20;

/** A peer that is frozen, or whose machine is gone, closes nothing: HTTP/2 can ask; for HTTP/1.1 see keepalive.ts. */
const SIGNS_OF_LIFE = { pingIntervalMs: 5_000, pingTimeoutMs: 3_000 };

/** Clients of providers, made when they are first asked for and kept while their address is the same. */
export function createProviders(
  bus: Bus,
  provider: (name: string) => Provider | undefined,
  telemetry?: Pick<Telemetry, "clientTracing">,
): FindProvider {
  const clients = new Map<string, ProviderClient>();
  const interceptors = clientInterceptors({ telemetry });
  // the scope names the principal, as information; a watch outlives the request that opened it
  const itself: Caller = { service: bus.login.name, isOperator: false };

  function clientAt({ address: { case: kind, value = "" } }: Provider): Client<typeof ToolProviderService> {
    if (kind === "service")
      return clientFor(bus, ToolProviderService, { process: value, interceptors, caller: () => itself });
    return clientOver(transportTo(value), ToolProviderService);
  }

  /** `grpc://` and `grpcs://` speak gRPC, `http://` and `https://` the Connect protocol. */
  function transportTo(url: string): Transport {
    const options = { interceptors, readMaxBytes: MAX_MESSAGE_BYTES };
    if (!url.startsWith("grpc")) return createConnectTransport({ ...options, baseUrl: url, httpVersion: "1.1" });
    return createGrpcTransport({ ...options, ...SIGNS_OF_LIFE, baseUrl: url.replace(/^grpc/, "http") });
  }

  return (name) => {
    const found = provider(name);
    if (found === undefined) return undefined;
    const { case: kind, value = "" } = found.address;
    const address = kind === "service" ? `bus:${value}` : value;
    const known = clients.get(name);
    if (known?.address === address) return known;
    const made = providerClient(address, clientAt(found), keepaliveOf(address));
    clients.set(name, made);
    return made;
  };
}

/** Any answer is one, also that there is no such page. */
function keepaliveOf(address: string): Keepalive | undefined {
  if (!/^https?:/.test(address)) return undefined;
  return createKeepalive((signal) => fetch(address, { method: "HEAD", redirect: "manual", signal }));
}

function providerClient(
  address: string,
  client: Client<typeof ToolProviderService>,
  keepalive: Keepalive | undefined,
): ProviderClient {
  const call: ProviderClient["callTool"] = (request, { signal }) =>
    keepalive
      ? keepalive.during((ends) => client.executeTool(request, { signal: ends }), signal)
      : client.executeTool(request, { signal });
  return {
    address,
    listTools: (request, { signal }) => client.getProvidedTools(request, { signal }).catch(fail),
    watchTools: (request, options) => translated(client.watchProvidedTools(request, options)),
    callTool: (request, options) => translated(call(request, options)),
    releaseScope: async (scope, { signal, forgetsSession = false }) =>
      (await client.releaseScope({ scope, forgetsSession }, { signal }).catch(fail)).closedCount,
  };
}

async function* translated<T>(messages: AsyncIterable<T>): AsyncGenerator<T> {
  let hasTold = false;
  try {
    for await (const message of messages) {
      hasTold = true;
      yield message;
    }
  } catch (error) {
    fail(error, hasTold);
  }
}

/** How libraries refuse an answer by its size: the one that reads it, and the provider's, which was to send it. */
const OVERSIZED =
  /readMaxBytes|writeMaxBytes|sendMaxBytes|\b(send|sent|sending) message (with a size larger|larger|exceeds)|^message too large \d/i;

function fail(error: unknown, hasTold = false): never {
  const isReasoned = error instanceof ConnectError && detailOf(error) !== undefined; // a failure has a reason by its code alone, too
  const failure = failureFromConnectError(error);
  const wasNotSent = deliveryOf(error) === "NOT_SENT" || isUnreached(error);
  if (wasNotSent) throw new Failure(failure.code, failure.message, { reason: "CALL_NOT_STARTED", cause: error });
  // an answer that is too large for its way says that the call was carried out
  const isTooLarge = (isReasoned ? failure.reason === "MESSAGE_TOO_LARGE" : hasTold) || OVERSIZED.test(failure.message);
  const isOversized = failure.code === "resource_exhausted" && isTooLarge;
  throw isOversized ? new Failure("data_loss", failure.message, { reason: "OUTCOME_UNKNOWN", cause: error }) : failure;
}

/** Nobody took the connection, so that nothing was sent on it. */
const UNREACHED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

function isUnreached(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && UNREACHED.has(String(cause.code))) return true;
  }
  return false;
}
