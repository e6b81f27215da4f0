/** The reason with which runs of an agent end that their session has left, and with which the router refuses its calls. */
export const AGENT_SWITCHED = "agent_switched";

/** The session has another agent than the run: the run ends as canceled (ORCH-1). */
export class AgentSwitched extends Error {
  constructor(runAgent: string, sessionAgent: string) {
    super(`the session was given agent ${JSON.stringify(sessionAgent)} in place of ${JSON.stringify(runAgent)}`);
    this.name = "AgentSwitched";
  }
}
