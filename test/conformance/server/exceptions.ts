/** Checks that fail, and why that stands. One that does not fail has no place here. */
export interface ServerExceptions {
  readonly reason: string;
  readonly revision: string;
  /** The ids of the checks in the package. */
  readonly checks: readonly string[];
}

export const serverExceptions: readonly ServerExceptions[] = [
  {
    reason: "nobody's model is asked on behalf of a server behind: agents have models of their own",
    revision: "2025-11-25",
    checks: ["tools-call-sampling"],
  },
  {
    reason:
      "what servers behind ask a model, or the roots of a workspace, the agent's entry of the server answers: no client is asked for either",
    revision: "2026-07-28",
    checks: [
      "sep-2322-list-roots-incomplete",
      "sep-2322-sampling-incomplete",
      "sep-2322-respect-client-capabilities",
      "sep-2322-multiple-inputs-incomplete",
    ],
  },
  {
    reason:
      "no call needs a capability of its client, which the package wants refused: a person in the space answers where the client cannot ask one",
    revision: "2026-07-28",
    checks: ["sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"],
  },
  {
    reason: "prompts of servers behind that ask people are refused: only calls of tools wait for an answer",
    revision: "2026-07-28",
    checks: ["sep-2322-non-tool-incomplete"],
  },
];
