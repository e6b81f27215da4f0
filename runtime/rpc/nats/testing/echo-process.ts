import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Said, Setting } from "./echo-program.ts";
import type { EchoWorld } from "./echo-world.ts";

/* One end of a call in a process of its own, which tests freeze, kill and measure. */

export interface EchoProcess extends AsyncDisposable {
  readonly pid: number;
  kill(signal: NodeJS.Signals): void;
  /** How many calls the process has begun. */
  readonly begun: number;
  /** What the process needs at this moment, without its garbage, and how many numbered messages it has made. */
  memory(): Promise<Extract<Said, { kind: "memory" }>>;
  /** How the calls of a burst have ended. */
  readonly burst: Promise<Extract<Said, { kind: "burst" }>>;
}

/** Starts a process in one of the roles; resolves when it is ready. */
export async function openEchoProcess(
  world: EchoWorld,
  setting: Pick<Setting, "role" | "service" | "timings" | "calls">,
): Promise<EchoProcess> {
  const { url, login } = world.server;
  const program = new URL("echo-program.ts", import.meta.url);
  const argument = JSON.stringify({ url, login, ...setting });
  const child = fork(program, [argument], { execArgv: [...process.execArgv, "--expose-gc"] });
  let begun = 0;
  child.on("message", (said: Said) => {
    if (said.kind === "begun") begun += 1;
  });
  const burst = nextSaid(child, "burst");
  await Promise.race([nextSaid(child, "ready"), failedStart(child, setting.role)]);
  return {
    pid: child.pid ?? 0,
    kill: (signal) => void child.kill(signal),
    get begun() {
      return begun;
    },
    burst,
    memory() {
      const said = nextSaid(child, "memory");
      child.send("memory");
      return said;
    },
    [Symbol.asyncDispose]: () => ended(child),
  };
}

/** The next thing of its kind that the process says. */
function nextSaid<K extends Said["kind"]>(child: ChildProcess, kind: K): Promise<Extract<Said, { kind: K }>> {
  return new Promise((resolve) => {
    const listen = (said: Said) => {
      if (said.kind !== kind) return;
      child.off("message", listen);
      resolve(said as Extract<Said, { kind: K }>);
    };
    child.on("message", listen);
  });
}

async function failedStart(child: ChildProcess, role: string): Promise<never> {
  const [code] = await once(child, "exit");
  throw new Error(`the ${role} did not start: ${code}`);
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
