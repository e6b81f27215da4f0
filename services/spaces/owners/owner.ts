/** Whose inbox, memory and active space: they stay with this agent of the session when the session gets another one. */
export interface Owner {
  sessionId: string;
  agent: string;
}

/** Names of sessions and agents hold no dot, so that no two owners share a key. */
export function keyOf({ sessionId, agent }: Owner): string {
  return `${sessionId}.${agent}`;
}

export function isSameOwner(one: Owner, other: Owner): boolean {
  return one.sessionId === other.sessionId && one.agent === other.agent;
}
