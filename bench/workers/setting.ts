import type { Load } from "../measuring/latencies.ts";

/** What the processes of the measurement agree on. */
export const AGENT = "measuring";
export const SESSION = "measured";
export const SOURCE = "echoing";
export const TOOL = "echo";
export const PURE_TOOL = "echo_pure";

/** Over the bus as a session calls, with a record and without, to the pool alone, and over the pipe of a worker that nobody else uses. */
export type Way = "call" | "pure" | "execute" | "pipe";

export interface Order extends Load {
  readonly way: Way;
}

export const WORKER = `# /// script
# dependencies = []
# [tool.toolbus.effects]
# echo_pure = "pure"
# ///
def echo(text: str) -> str:
    return text

def echo_pure(text: str) -> str:
    return text
`;
