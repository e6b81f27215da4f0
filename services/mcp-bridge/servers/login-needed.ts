import { Failure } from "#runtime/failure/failure.ts";
import { startedNothing } from "#runtime/failure/not-started.ts";

/** The server has asked for a token, or for further scopes, and nobody has agreed to that yet. */
export class LoginNeeded extends Failure {
  /** Whether a person's token is exchanged there: then nobody logs in. */
  readonly isExchanged: boolean;

  constructor(server: string, why: string, isExchanged = false) {
    const text = isExchanged
      ? `${server} takes the tokens of persons in exchange: come to the gateway with a JWT (${why})`
      : `${server} needs login: toolbus mcp login ${server} (${why})`;
    super("failed_precondition", text, { reason: "MCP_LOGIN_NEEDED", metadata: { server } });
    this.isExchanged = isExchanged;
  }
}

/** What the bridge itself has refused, deep in an error of the SDK; nothing was sent then. */
export function refusalIn(error: unknown): Failure | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof LoginNeeded || (cause instanceof Failure && startedNothing(cause))) return cause;
  }
  return undefined;
}

export function loginNeededIn(error: unknown): LoginNeeded | undefined {
  const refusal = refusalIn(error);
  if (refusal instanceof LoginNeeded) return refusal;
  return refusal?.cause === undefined ? undefined : loginNeededIn(refusal.cause);
}
