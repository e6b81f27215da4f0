import { hash } from "node:crypto";

/** The orchestrator's subjects. Ids stand in subjects to be filtered, never to be parsed. */
export const runSubjects = {
  log: (runId: string) => `toolbus.run.${runId}`,
  everyLog: "toolbus.run.*",
  everyQueue: "toolbus.run.session.*",
  queue: (sessionId: string) => `toolbus.run.session.${sessionId}`,
  key: (sessionId: string, key: string) => `toolbus.run.key.${sessionId}.${hash("sha256", key, "hex").slice(0, 32)}`,
  everyKey: (sessionId: string) => `toolbus.run.key.${sessionId}.*`,
  /** Holds the time at which a run's session is to be woken. */
  timer: (runId: string) => `toolbus.timer.at.${runId}`,
  timerDue: (sessionId: string) => `toolbus.timer.due.${sessionId}`,
  everyTimerDue: "toolbus.timer.due.*",
  /** What watchers subscribe to: deltas, and stored events after they were acknowledged. */
  live: (runId: string) => `toolbus.delta.${runId}`,
  /** Tells who follows runs of one that a client deleted. */
  deleted: "toolbus.deleted.run",
  /** Where a process answers for the sessions that it works on. */
  holder: (instance: string) => `toolbus.owner.orchestrator.${instance}`,
} as const;
