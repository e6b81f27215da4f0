import type { CallToolResult } from "@modelcontextprotocol/client";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { delay } from "#runtime/time/delay.ts";
import { createBackoff } from "#runtime/time/retry/backoff.ts";
import { timeoutSignal } from "#runtime/time/timeout-signal.ts";
import type { LinkKeeper } from "../link-keeper.ts";
import type { Outcome } from "../outcome/outcome.ts";
import type { ReadyPhase } from "../phase/phase.ts";
import { errorAnswer, isUnderWay, pollMsOf, type Task } from "./tasks.ts";

export interface FollowedTask {
  readonly task: Task;
  readonly keeper: Pick<LinkKeeper, "whenReady" | "leave">;
  readonly ready: ReadyPhase;
  /** Whether the server has its tasks still when the connection to it is made anew: one that is a process of ours has not. */
  readonly outlivesLink: boolean;
  /** Told of what the server says of it. */
  readonly onStatus: (message: string, count: number) => void;
  readonly signal: AbortSignal;
}

const CANCEL_MS = 5_000;
const MOST_FAILURES = 10;

/**
 * Follows the task of a call to its result. The call is never repeated: what was started goes on at the server. Where the server
 * cannot be asked any more, the outcome is unknown.
 */
export async function followTask(followed: FollowedTask): Promise<{ answer: CallToolResult } | { outcome: Outcome }> {
  const { keeper, signal, onStatus } = followed;
  const backoff = createBackoff({ initialMs: 100, maxMs: 5_000 });
  let { task, ready } = followed;
  let count = 0;
  for (let failures = 0; ; ) {
    try {
      if (!isUnderWay(task)) return { answer: await ready.link.tasks.result(task, signal) };
      await delay(pollMsOf(task), signal);
      const told = task.statusMessage;
      task = await ready.link.tasks.get(task.taskId, signal);
      failures = 0;
      backoff.reset();
      if (task.statusMessage && task.statusMessage !== told) onStatus(task.statusMessage, ++count);
    } catch (error) {
      if (signal.aborted) {
        void cancelTask(ready, task);
        return { outcome: { kind: "unknown", text: messageFromUnknown(signal.reason) } };
      }
      const outcome = ready.link.outcomeOf(error);
      if (outcome.kind === "answered" && !isUnderWay(task)) return { answer: errorAnswer(outcome.text) };
      failures += 1;
      if (outcome.kind === "answered" || !followed.outlivesLink || failures > MOST_FAILURES)
        return { outcome: { kind: "unknown", text: `its task cannot be followed: ${outcome.text}` } };
      if (outcome.kind === "lost" || outcome.kind === "unreachable") keeper.leave(ready, outcome);
      await delay(backoff.next(), signal).catch(() => {}); // the next question finds it aborted
      ready = await keeper.whenReady(signal).catch(() => ready); // asked again after a while
    }
  }
}

async function cancelTask({ link }: ReadyPhase, { taskId }: Task): Promise<void> {
  using limit = timeoutSignal(CANCEL_MS);
  await link.tasks.cancel(taskId, limit).catch(() => {}); // it has ended, or nobody can be told
}
