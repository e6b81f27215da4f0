import { randomUUID } from "node:crypto";
import type { Bus } from "#runtime/bus/bus.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { askWhetherAlive } from "#runtime/bus/liveness.ts";
import type { Presence } from "../../calls/watchers/ports.ts";
import { tokenFrom } from "./subject-token.ts";

/*
 * A router has interest in the subjects of its watchers and their tools for as long as their streams live, and answers. Without
 * interest, and without an answer, nobody is there (`#runtime/bus/liveness.ts`).
 */

const toolSubject = (tool: string) => `toolbus.watch.tool.${tokenFrom(tool)}`;
const principalSubject = (principal: string, tool: string) => `toolbus.watch.principal.${tokenFrom(principal, tool)}`;
const watcherSubject = (watcher: string) => `toolbus.watch.watcher.${watcher}`;

export function createWatchPresence(bus: Bus): Presence {
  const { connection } = bus;
  const shown = new Map<string, { count: number; end: () => void }>();

  async function isThere(subject: string, signal: AbortSignal): Promise<boolean> {
    return (await askWhetherAlive(bus, { subject, signal })).kind === "alive";
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
  const subscription = listen(bus, subject, (message) => {
    message.respond();
    onQuestion(message.string());
  });
  return () => subscription.unsubscribe();
}
