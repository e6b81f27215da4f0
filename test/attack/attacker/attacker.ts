import { fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Ground, PlayOptions } from "../attack.ts";
import type { FromAttacker, ToAttacker } from "./process.ts";

export interface Attacker extends AsyncDisposable {
  /** Plays the attack once. */
  play(name: string, options: PlayOptions): Promise<FromAttacker>;
}

/** It would have a machine of its own: where that can be had, it runs when nobody else wants to. */
const canBeIdle = spawnSync("chrt", ["-i", "0", "true"]).status === 0;
const whenIdle = canBeIdle ? { execPath: "chrt", execArgv: ["-i", "0", process.execPath] } : {};

export function openAttacker(ground: Ground): Attacker {
  const child = fork(fileURLToPath(new URL("process.ts", import.meta.url)), whenIdle);
  const tell = (message: ToAttacker) => child.send(message);
  const exited = once(child, "exit").then(() => [faultOf("the attacker's own process has ended")]);
  tell({ kind: "ground", ground });
  return {
    async play(name, options) {
      tell({ kind: "play", name, options });
      const limitMs = options.isShort ? 60_000 : 240_000;
      const answer = new Promise<[FromAttacker]>((resolve) =>
        child.once("message", (told) => resolve([told as FromAttacker])),
      );
      const late = [faultOf(`it was not over after ${limitMs / 1_000} s`)];
      const [told] = await Promise.race([answer, exited, pause(limitMs, late, { ref: false })]);
      return told!;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.disconnect();
      child.kill("SIGKILL");
      await ended;
    },
  };
}

const faultOf = (fault: string): FromAttacker => ({ tries: 0, reached: [], fault });
