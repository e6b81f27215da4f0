/** Checks that fail, and why that stands. One that does not fail has no place here. */
export interface ServerExceptions {
  readonly reason: string;
  readonly revision: string;
  /** The ids of the checks in the package. */
  readonly checks: readonly string[];
}

export const serverExceptions: readonly ServerExceptions[] = [
  {
    reason:
      "log messages come in 2026-07-28 alone, where each request says which: a level that is set once would have to be kept",
    revision: "2025-11-25",
    checks: ["logging-set-level", "tools-call-with-logging"],
  },
  {
    reason: "nobody's model is asked on behalf of a server behind: agents have models of their own",
    revision: "2025-11-25",
    checks: ["tools-call-sampling"],
  },
  {
    reason: "what servers behind ask models or roots for, agents answer: nobody's client is asked on their behalf",
    revision: "2026-07-28",
    checks: [
      "sep-2322-list-roots-incomplete",
      "sep-2322-sampling-incomplete",
      "sep-2322-respect-client-capabilities",
      "sep-2322-multiple-inputs-incomplete",
      "sep-2575-server-rejects-undeclared-capability",
      "sep-2575-missing-capability-http-400",
    ],
  },
  {
    reason: "prompts of servers behind that ask people are refused: only calls of tools wait for an answer",
    revision: "2026-07-28",
    checks: ["sep-2322-non-tool-incomplete"],
  },
  {
    reason:
      "the package wants a tool that changes its own server's list in the call: the door tells of lists that an agent is given",
    revision: "2026-07-28",
    checks: ["sep-2575-server-sends-tools-list-changed-on-subscription"],
  },
];
