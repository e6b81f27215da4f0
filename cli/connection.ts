import type { DescService } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { connectError, createTranslation } from "#runtime/failure/connect.ts";
import { isUnreachable } from "./faults/fault.ts";
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
  const breaking = createTranslation((thrown, { signal }) => {
    const error = ConnectError.from(thrown);
    if (signal.aborted || !isBreak(error)) return error;
    const text = `the connection to ${url} broke: ${error.rawMessage}`;
    return connectError("unavailable", text, { reason: "OUTCOME_UNKNOWN" });
  });
  const interceptors = [breaking, authorize];
  const transport = createConnectTransport({ ...SIGNS_OF_LIFE, baseUrl: url, httpVersion: "2", interceptors });
  return { url, client: (service) => createClient(service, transport) };
}

/** A gateway that is frozen, or whose machine is gone, closes nothing. */
const SIGNS_OF_LIFE = { pingIntervalMs: 5_000, pingTimeoutMs: 5_000 };

/** Told by the connection that a request was on: Connect calls it canceled, though nobody here has canceled anything. */
function isBreak(error: ConnectError): boolean {
  if (error.isWireError || isUnreachable(error)) return false;
  return [Code.Canceled, Code.Aborted, Code.Unavailable].includes(error.code);
}
