import { randomUUID } from "node:crypto";
import { askOnce } from "#runtime/bus/ask.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { delay } from "#runtime/time/delay.ts";
import type { Presence } from "../../calls/watchers/watching.ts";
import { tokenFrom } from "./subject-token.ts";

/*
 * P1  A router has interest in the subjects of its watchers and their tools for as long as their streams live, and answers.
 * P2  No interest, and no answer, mean that nobody is there: a frozen router keeps its interest.
 * P3  Both mean nothing around a loss of the bus: the others return a little later, too.
 */

const ANSWER_MS = 1_000;
const SETTLING_MS = 1_000;

const toolSubject = (tool: string) => `toolbus.watch.tool.${tokenFrom(tool)}`;
const principalSubject = (principal: string, tool: string) => `toolbus.watch.principal.${tokenFrom(principal, tool)}`;
const watcherSubject = (watcher: string) => `toolbus.watch.watcher.${watcher}`;

export function createWatchPresence(bus: Bus): Presence {
  const { connection } = bus;
  const shown = new Map<string, { count: number; end: () => void }>();

  async function isThere(subject: string, signal: AbortSignal): Promise<boolean> {
    for (;;) {
      await bus.link.whenUp(signal);
      const askedAt = performance.now();
      const { kind } = await askOnce(bus, { subject, timeoutMs: ANSWER_MS, signal });
      if (kind === "answered") return true;
      if (kind !== "lost" && askedAt - bus.link.returnedAtMs >= SETTLING_MS) return false; // P2
      await delay(50, signal); // P3
    }
  }

  function showInterest(subject: string): () => void {
    const standing = shown.get(subject) ?? { count: 0, end: answering(bus, subject) };
    standing.count += 1;
    shown.set(subject, standing);
    return () => {
      standing.count -= 1;
      if (standing.count > 0) return;
      shown.delete(subject);
      standing.end();
    };
  }

  return {
    isWatched: (tool, signal) => isThere(toolSubject(tool), signal),
    isWatchedBy: (principal, tool, signal) => isThere(principalSubject(principal, tool), signal),
    isWatching: (watcher, signal) => isThere(watcherSubject(watcher), signal),
    show({ token, principal, tools }, onReplaced) {
      const subject = watcherSubject(token);
      const interests = [...new Set(tools)].flatMap((tool) => [toolSubject(tool), principalSubject(principal, tool)]);
      const stream = randomUUID();
      const onQuestion = (successor: string) => {
        if (successor !== "" && successor !== stream) onReplaced();
      };
      const ends = [answering(bus, subject, onQuestion), ...interests.map(showInterest)];
      connection.publish(subject, stream);
      return {
        [Symbol.dispose]() {
          for (const end of ends) end();
        },
      };
    },
  };
}

function answering(bus: Bus, subject: string, onQuestion: (text: string) => void = () => {}): () => void {
  const subscription = bus.connection.subscribe(subject, {
    callback: (error, message) => {
      if (error !== null) return;
      message.respond();
      onQuestion(message.string());
    },
  });
  return () => subscription.unsubscribe();
}
