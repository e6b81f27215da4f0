import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { FromNeighbour, NeighbourCall, ToNeighbour } from "./calls.ts";

/** The other principal, in a process of its own. */
export interface Neighbour extends AsyncDisposable {
  /** The calls that were answered or lost since the last time. */
  take(): Promise<readonly NeighbourCall[]>;
}

export async function openNeighbour(url: string, key: string): Promise<Neighbour> {
  const child = fork(fileURLToPath(new URL("process.ts", import.meta.url)));
  const ask = async <K extends FromNeighbour["kind"]>(message: ToNeighbour) => {
    child.send(message);
    const [answer] = await once(child, "message");
    return answer as Extract<FromNeighbour, { kind: K }>;
  };
  await ask<"ready">({ kind: "begin", url, key });
  return {
    take: async () => (await ask<"calls">({ kind: "take" })).calls,
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.disconnect();
      await ended;
    },
  };
}
