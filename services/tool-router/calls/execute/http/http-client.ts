import { Agent, request } from "undici";
import type { AddressGuard } from "#runtime/http/address-guard.ts";
import { guardedConnector } from "#runtime/http/guarded-connector.ts";

/** Pooled connections, which lead only where the guard allows, and what asks over them. */
export interface HttpClient {
  readonly agent: Agent;
  readonly request: typeof request;
}

export function openHttpClient(guard: AddressGuard): HttpClient {
  // the call's own deadline ends it, and nothing before that
  const patience = { headersTimeout: 0, bodyTimeout: 0 };
  return { agent: new Agent({ connect: guardedConnector(guard), connections: 64, ...patience }), request };
}
