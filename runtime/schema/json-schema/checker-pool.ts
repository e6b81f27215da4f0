import { createHash } from "node:crypto";
import type { Piscina } from "piscina";
import { BoundedMap } from "#runtime/collections/maps/bounded-map.ts";
import { RoundRobinQueue } from "#runtime/collections/turns/round-robin-queue.ts";
import { moduleBeside } from "#runtime/config/places.ts";
import { createThreadPool } from "#runtime/lifecycle/node/thread-pool.ts";
import type { Finding, Question } from "./checker.ts";
import { CHECK_MS, COMPILE_MS } from "./limits.ts";

/*
 * What may cost much is answered on threads of their own, two a process, whose priority is low. They start when they are needed and
 * end when they are idle. Nobody has more than one of them at a time. A schema that is too slow to compile is not tried again for a while.
 */

const THREADS = 2;
const HEAP_MB = 256;
/** A thread that is not stopped by its own limits, or that a machine at its limits gives no time. Its start counts. */
const HANGING_MS = 60_000;
const MAX_WAITING = 200;
const LARGE_TEXT = 1024 * 1024;
const QUARANTINE_MS = 60_000;

const queue = new RoundRobinQueue(THREADS);
const places = new Map<string, number>();
/** Until when a schema that compiles too slowly is not tried again, by its digest. */
const quarantine = new BoundedMap<string, number>(1_000);
let pool: Piscina<Question, Finding> | undefined;

function threads(): Piscina<Question, Finding> {
  const module = moduleBeside(import.meta, "checker-thread");
  pool ??= createThreadPool({ module, maxThreads: THREADS, heapMb: HEAP_MB });
  return pool;
}

const TOO_COSTLY =
  `the schema takes longer than ${COMPILE_MS} ms or more than ${HEAP_MB} MB to compile; ` +
  `it is tried again after ${QUARANTINE_MS / 1_000} s`;

const WHY = {
  compile: TOO_COSTLY,
  check: `it takes longer than ${CHECK_MS} ms`,
  memory: `it takes more than ${HEAP_MB} MB to read`,
};

const HANGS = `there was no answer within ${HANGING_MS} ms; this machine may be too busy: try again`;

/** Why no answer was found. */
export class Unanswered extends Error {}

export interface Asker {
  /** On whose behalf it is asked: his questions are answered one at a time. */
  readonly by: string;
  /** Ends the waiting for that. */
  readonly signal?: AbortSignal | undefined;
  /** Whether it waits however many of his wait already: nobody can bring again what a tool has answered. */
  readonly isPatient?: boolean;
}

export async function askThread(
  question: Question,
  { by, signal, isPatient = false }: Asker,
): Promise<string | undefined> {
  const digest = createHash("sha256").update(question.schemaJson).digest("base64");
  using _ = isPatient ? undefined : placeOf(by);
  const finding = await queue.run(by, () => answered(question, digest), signal);
  if (finding === "hangs") throw new Unanswered(HANGS);
  if (finding.kind === "found") return finding.fault;
  throw new Unanswered(WHY[finding.step]);
}

/** One of the questions of his that wait, or are answered, until it is disposed. Results do not count. */
function placeOf(by: string): Disposable {
  const taken = places.get(by) ?? 0;
  if (taken > MAX_WAITING) throw new Unanswered(`${MAX_WAITING} checks of the same caller wait already`);
  places.set(by, taken + 1);
  return {
    [Symbol.dispose]: () => {
      const left = (places.get(by) ?? 0) - 1;
      if (left > 0) places.set(by, left);
      else places.delete(by);
    },
  };
}

async function answered(question: Question, digest: string): Promise<Finding | "hangs"> {
  if ((quarantine.get(digest) ?? 0) > Date.now()) return { kind: "slow", step: "compile" };
  const finding = await asked(question);
  if (finding !== "hangs" && finding.kind === "slow" && finding.step === "compile")
    quarantine.set(digest, Date.now() + QUARANTINE_MS);
  return finding;
}

/** A schema is not to blame, nor tried later, for what is held against it. */
function isLargeText(question: Question): boolean {
  return question.kind === "check" && question.json.length > LARGE_TEXT;
}

async function asked(question: Question): Promise<Finding | "hangs"> {
  try {
    return await threads().run(question, { signal: AbortSignal.timeout(HANGING_MS) });
  } catch (error) {
    const { name, code } = Object(error);
    if (name === "AbortError") return "hangs";
    if (code === "ERR_WORKER_OUT_OF_MEMORY")
      return { kind: "slow", step: isLargeText(question) ? "memory" : "compile" };
    throw error;
  }
}
