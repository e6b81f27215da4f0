import type { CallOptions, Client } from "@connectrpc/connect";
import type { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import type { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { BodyLimits } from "#runtime/rpc/http/body/request-body.ts";
import type { Enter, EnterAgain } from "../access/admission.ts";
import type { Exchange } from "../plain/exchange.ts";

/** What the door asks the services for. */
export interface ResponsesParts {
  readonly runs: Client<typeof RunService>;
  readonly agents: Client<typeof AgentService>;
  readonly enter: Enter;
  readonly enterAgain: EnterAgain;
  /** Told of what is nobody's but this process's fault. */
  readonly onFault: (error: unknown) => void;
  /** Counts what a sender holds, as for bodies. */
  readonly holdFor: BodyLimits["holdFor"];
  /** The largest body. */
  readonly maxBytes: number;
  /** Aborts when this process stops. */
  readonly stopping: AbortSignal;
}

/** A request to the door, let in. */
export interface ResponsesExchange extends Exchange {
  readonly parts: ResponsesParts;
  readonly options: CallOptions & { readonly signal: AbortSignal };
  readonly query: URLSearchParams;
}
