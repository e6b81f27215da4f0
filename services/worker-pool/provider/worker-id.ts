import { createHash } from "node:crypto";

/** What tells a worker from every other one: its pool, its file, and which start of the file it is. */
export interface WorkerStart {
  instance: string;
  file: string;
  start: number;
}

/** Names of files hold letters that ids do not. */
export function idOfWorker({ instance, file, start }: WorkerStart): string {
  const place = createHash("sha256").update(`${instance}\0${file}`).digest("hex").slice(0, 16);
  return `${place}-${start}`;
}
