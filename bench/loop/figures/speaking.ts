/*
 * Runs that all speak at fifty tokens a second, each with a listener. Every token tells when it was due, so that a listener knows
 * how late it is. Held are as many as hear 98 of 100 tokens on time: within a quarter of a second.
 */

import { execFile } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { dueTimesOf, type Plan, quiet } from "../plan.ts";
import { cpuMicrosecondsOf } from "./cpu.ts";

export const deltaMs = 20;
const spokenMs = 8_000;
const settlingMs = 500;
const windowMs = 3_500;
const onTimeMs = 250;
const shareOnTime = 0.98;
const trials = [100, 200, 300, 400, 600, 800];

export interface Trial {
  /** How many were due in the time that was looked at, and how many of them came. */
  readonly due: number;
  readonly heard: number;
  readonly onTime: number;
  readonly cpuMicroseconds: number;
}

export interface Speaking {
  /** Starts a run of the plan, and tells its tokens as they come, until it has ended. */
  listen(plan: Plan, onTokens: (text: string) => void): Promise<void>;
  /** The processes whose CPU time is looked at. */
  readonly pids: readonly number[];
}

/**
 * Lets so many runs speak at once, and looks at the tokens that are due in a window of time after all of them have begun. It
 * listens a quarter of a second longer than the window, as the last tokens of it are on time until then.
 */
export async function speak({ listen, pids }: Speaking, count: number): Promise<Trial> {
  const plan = { ...quiet, turns: 0, deltas: (spokenMs + count * 20) / deltaMs, deltaMs };
  const latenesses: number[] = [];
  let window = { fromMs: Number.POSITIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
  let speaking = 0;
  const allSpeak = Promise.withResolvers<void>();

  async function one(): Promise<void> {
    let hasSpoken = false;
    await listen({ ...plan, id: crypto.randomUUID() }, (tokens) => {
      if (!hasSpoken) {
        hasSpoken = true;
        speaking += 1;
        if (speaking === count) allSpeak.resolve();
      }
      const now = Date.now();
      for (const dueAt of dueTimesOf(tokens)) {
        if (dueAt >= window.fromMs && dueAt < window.toMs) latenesses.push(now - dueAt);
      }
    });
  }

  // more than can be held are cut off: what their listeners did not hear is missing in the count
  const listeners = Array.from({ length: count }, () => one().catch(() => {}));
  await Promise.race([allSpeak.promise, Promise.all(listeners)]);
  await wait(settlingMs);
  const fromMs = Date.now();
  window = { fromMs, toMs: fromMs + windowMs };
  const before = cpuOf(pids);
  await wait(windowMs);
  const cpuMicroseconds = cpuOf(pids) - before;
  await wait(onTimeMs);
  const heard = latenesses.length;
  const onTime = latenesses.filter((ms) => ms <= onTimeMs).length;
  await Promise.all(listeners);
  return { due: Math.round((count * windowMs) / deltaMs), heard, onTime, cpuMicroseconds };
}

/** The largest of the counts, which grow, that is held. */
export async function mostHeld(speaking: Speaking, counts: readonly number[] = trials): Promise<number> {
  let held = 0;
  for (const count of counts) {
    const trial = await speak(speaking, count);
    if (trial.onTime < trial.due * shareOnTime) break;
    held = count;
  }
  return held;
}

export async function bindToCore(pid: number, core: string): Promise<void> {
  await promisify(execFile)("taskset", ["-a", "-p", "-c", core, String(pid)]);
}

function cpuOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + cpuMicrosecondsOf(pid), 0);
}
