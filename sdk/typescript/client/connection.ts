import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { retryWhile } from "#runtime/time/retry/retry.ts";
import { errorOf, isPassing } from "./error.ts";

export interface ToolbusOptions {
  /** The address of the gateway; `TOOLBUS_URL` or `http://127.0.0.1:7480` unless given. */
  readonly url?: string | undefined;
  /** An API key or a JWT, or what gives one for each request; `TOOLBUS_API_KEY` unless given. */
  readonly apiKey?: string | (() => string | Promise<string>) | undefined;
  /** For how long a suite that cannot be reached is tried again, in ms; 15,000 unless given. */
  readonly patienceMs?: number | undefined;
  /** Another transport of Connect, such as gRPC over HTTP/2; `url` and `apiKey` are then its own. */
  readonly transport?: Transport | undefined;
}

/** The way to the suite, which all that the library does goes. */
export interface Connection {
  readonly patienceMs: number;
  /** A client of any service of the contract, for what the library has no words for. It repeats nothing. */
  client<S extends DescService>(service: S): Client<S>;
  /** Sends what may arrive twice until it is answered; throws a `ToolbusError`. */
  repeat<T>(send: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

export function openConnection(options: ToolbusOptions): Connection {
  const env: Record<string, string | undefined> = typeof process === "undefined" ? {} : process.env;
  const {
    url = env.TOOLBUS_URL ?? "http://127.0.0.1:7480",
    apiKey = env.TOOLBUS_API_KEY,
    patienceMs = 15_000,
    transport = createConnectTransport({ baseUrl: url, useBinaryFormat: true, interceptors: [authorizing(apiKey)] }),
  } = options;
  return {
    patienceMs,
    client: (service) => createClient(service, transport),
    async repeat(send, signal) {
      try {
        return await retryWhile(isPassing, send, { initialMs: 50, maxMs: 2_000, patienceMs, signal });
      } catch (error) {
        throw signal?.aborted ? signal.reason : errorOf(error, options.transport ? undefined : url);
      }
    },
  };
}

function authorizing(apiKey: ToolbusOptions["apiKey"]): Interceptor {
  return (next) => async (request) => {
    const key = typeof apiKey === "function" ? await apiKey() : apiKey;
    if (key) request.header.set("authorization", `Bearer ${key}`);
    return next(request);
  };
}

/** A name that nobody else has. `crypto.randomUUID` is missing on pages that came over plain HTTP. */
export function randomName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
