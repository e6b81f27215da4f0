import type { Load } from "../measuring/latencies.ts";

/** What the processes of the measurement agree on. */
export const AGENT = "measuring";
export const SESSION = "measured";
export const SOURCE = "echoing";
export const TOOL = "echo";

/** Over the bus as a session calls, to the pool alone, and over the pipe of a worker that nobody else uses. */
export type Way = "call" | "execute" | "pipe";

export interface Order extends Load {
  readonly way: Way;
}

export const WORKER = `# /// script
# dependencies = []
# ///
def echo(text: str) -> str:
    return text
`;
