import type { DescService } from "@bufbuild/protobuf";
import type { CallOptions, Client } from "@connectrpc/connect";
import { failingAs, failureFromConnectError } from "../../failure/connect.ts";
import { Failure } from "../../failure/failure.ts";
import { withPrincipal } from "../identity.ts";
import { deliveryOf } from "../nats/call/delivery.ts";

export interface OnBehalfOptions extends CallOptions {
  readonly signal: AbortSignal;
  /** On whose behalf. */
  readonly principal: string;
}

/** A client whose calls say on whose behalf they are made, and fail with a `Failure`. */
export type ClientOnBehalf<S extends DescService> = {
  [Name in keyof Client<S>]: Client<S>[Name] extends (request: infer Request, options?: CallOptions) => infer Answer
    ? (request: Request, options: OnBehalfOptions) => Answer
    : never;
};

type Answer = Promise<unknown> | AsyncIterable<unknown>;

export function clientOnBehalf<S extends DescService>(client: Client<S>): ClientOnBehalf<S> {
  const methods = Object.entries(client as Record<string, (request: unknown, options: CallOptions) => Answer>);
  const onBehalf = methods.map(([name, call]) => [
    name,
    (request: unknown, options: OnBehalfOptions) => {
      const answer = withPrincipal(options.principal, () => call(request, options));
      return answer instanceof Promise ? answer.catch(throwFailure) : failingAs(answer, throwFailure);
    },
  ]);
  return Object.fromEntries(onBehalf);
}

/** A request that was not sent never started, and the error says so. */
function throwFailure(error: unknown): never {
  const failure = failureFromConnectError(error);
  if (deliveryOf(error) !== "NOT_SENT") throw failure;
  throw new Failure(failure.code, failure.message, { reason: "CALL_NOT_STARTED", cause: error });
}
