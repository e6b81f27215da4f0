/** The processes of this service ask each other for the sessions that they work on; who does not answer is as good as gone. */

import type { Bus } from "#runtime/bus/bus.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { askOnceWhetherAlive } from "#runtime/bus/liveness.ts";
import type { HolderAnswer, Holders } from "../sessions/wakes/wake.ts";
import { runSubjects } from "./run-subjects.ts";

type Question = { kind: "session"; sessionId: string; wakeId?: number } | { kind: "snapshot"; runId: string };

export interface HolderAnswers {
  answer(sessionId: string, wakeId: number | undefined): HolderAnswer;
  /** Tells the run's watchers the text so far, if the run is worked on here. */
  publishSnapshot(runId: string): void;
}

export function createHolders(bus: Bus): Holders {
  async function ask(instance: string, sessionId: string, wakeId: number): Promise<HolderAnswer | "gone" | "unsure"> {
    const question: Question = { kind: "session", sessionId, wakeId };
    const text = JSON.stringify(question);
    const holder = await askOnceWhetherAlive(bus, { subject: runSubjects.holder(instance), text });
    if (holder.kind === "alive") return holder.message.string() as HolderAnswer;
    return holder.kind === "unsure" ? "unsure" : "gone";
  }

  function send(instance: string, question: Question): void {
    bus.connection.publish(runSubjects.holder(instance), JSON.stringify(question));
  }

  return {
    ask,
    notify: (instance, sessionId) => send(instance, { kind: "session", sessionId }),
    requestSnapshot: (instance, runId) => send(instance, { kind: "snapshot", runId }),
  };
}

/** Requests for a run's text within this time are answered with one message, which all of its watchers get. */
const gatheringMs = 10;

/** Answers the other processes. Resolves when their questions arrive. */
export async function openHolderAnswers(bus: Bus, instance: string, answers: HolderAnswers): Promise<AsyncDisposable> {
  const gathering = openGathering(answers.publishSnapshot);
  const subscription = listen(bus, runSubjects.holder(instance), (message) => {
    const question = message.json<Question>();
    if (question.kind === "snapshot") gathering.add(question.runId);
    else message.respond(answers.answer(question.sessionId, question.wakeId));
  });
  await bus.connection.flush();
  return {
    [Symbol.asyncDispose]: async () => {
      gathering.stop();
      await subscription.drain();
    },
  };
}

function openGathering(send: (runId: string) => void) {
  const runIds = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const tellAll = () => {
    timer = undefined;
    for (const runId of runIds) send(runId);
    runIds.clear();
  };
  return {
    add(runId: string): void {
      runIds.add(runId);
      timer ??= setTimeout(tellAll, gatheringMs);
    },
    stop: () => clearTimeout(timer),
  };
}
