import type { Random } from "../../random.ts";
import type { Pair, Point } from "./points.ts";
import { classesByTool } from "./script.ts";

/** What the seed decides beside the pair. */
export interface Choices {
  readonly parks: boolean;
  readonly turn: number;
  readonly tool: string;
  readonly hitsRouter: boolean;
  readonly cancelAt: Point | undefined;
  /** Where the first process is killed, if the point is in the recovery. */
  readonly firstKillAt: Point | undefined;
  readonly hasNextRun: boolean;
  /** Whether an event comes into the session's inbox while the run is under way. */
  readonly hasNews: boolean;
  readonly parallelToolCalls: boolean;
  /** Whether the victim of a cancellation is the process that works on the run, not the one that was asked. */
  readonly hitsHolder: boolean;
  /** Whether the run is canceled while its process is frozen with a turn in its hand. */
  readonly cancelsMeanwhile: boolean;
}

/** Points of a turn with calls, and the listing of tools, which are listed once unless they change. */
const turnsWithTools: readonly Point[] = ["before the model call", "in mid arguments", "some calls done", "recorded"];

export function choose({ point, fault }: Pair, random: Random): Choices {
  const cancelAt =
    point === "canceling" ? random.pick<Point>(["in mid text", "effect done, not recorded", "parked"]) : undefined;
  const parks = point === "parked" || cancelAt === "parked" || random.next() < 0.25;
  const lastTurn = parks ? 3 : 2;
  const mayBeLater = !turnsWithTools.includes(point) && cancelAt === undefined;
  const turn = mayBeLater && random.next() < 0.4 ? lastTurn : 1;
  const early: Point[] = ["after claim", "in mid text", "after commit", "effect done, not recorded"];
  return {
    parks,
    turn: point === "in mid arguments" && parks && random.next() < 0.5 ? 2 : turn,
    tool: random.next() < 0.6 ? "send" : random.pick([...classesByTool.keys()]),
    hitsRouter: point === "effect done, not recorded" && ["kill -9", "SIGSTOP"].includes(fault) && random.next() < 0.4,
    cancelAt,
    firstKillAt: point === "during recovery" ? random.pick(early) : undefined,
    parallelToolCalls: ["some calls done"].includes(point) || random.next() < 0.6,
    hitsHolder: random.next() < 0.5,
    cancelsMeanwhile: fault === "SIGSTOP" && ["before commit", "after commit"].includes(point) && random.next() < 0.5,
    hasNews: point === "ended with news",
    hasNextRun: ["canceling", "terminal written, not sent"].includes(point) && random.next() < 0.5,
  };
}
