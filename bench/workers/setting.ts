/** What the processes of the measurement agree on. */
export const AGENT = "measuring";
export const SESSION = "measured";
export const SOURCE = "echoing";
export const TOOL = "echo";

/** Over the bus as a session calls, to the pool alone, and over the pipe of a worker that nobody else uses. */
export type Way = "call" | "execute" | "pipe";

/** What the caller's process is asked to do, and what came of it. */
export interface Order {
  way: Way;
  inFlight: number;
  durationMs: number;
}

export interface Report {
  p50Ms: number;
  perSecond: number;
}

export const WORKER = `# /// script
# dependencies = []
# ///
def echo(text: str) -> str:
    return text
`;
