/** The id under which the router, and so spaces, know a call of a run. */
export function routerCallId(runId: string, callId: string): string {
  return `${runId}_${callId}`;
}
