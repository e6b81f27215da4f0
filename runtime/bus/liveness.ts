/**
 * Whether somebody is alive who answers on a subject.
 *
 * liveness-1  An answer is believed at once.
 * liveness-2  Silence for a second means that nobody is alive: a frozen process keeps its subscriptions. It is asked several times
 *     within it: who dies with a question in its hands is told from who lives by the next one.
 * liveness-3  Silence counts only when the server itself answers promptly: else it, or this process, is what is slow.
 * liveness-4  Neither silence nor a lack of subscribers counts for a second after this process's own return to the server: others
 *     return a little later. In a cluster the nodes tell each other of subscriptions, so that a lack of them does not count for a
 *     second after they were made, either.
 * liveness-5  Only that counts: no other failure of asking means that nobody is alive.
 */

import { errors, type Msg } from "@nats-io/transport-node";
import { comesWithin } from "../time/comes-within.ts";
import { delay } from "../time/delay.ts";
import { unlessAborted } from "../time/unless-aborted.ts";
import type { Bus } from "./bus.ts";

export interface Question {
  readonly subject: string;
  readonly text?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** When whoever is to answer subscribed, in ms since 1970; long ago unless told. */
  readonly subscribedAtMs?: number | undefined;
  /** How long nobody may answer; 1 s unless told. */
  readonly silenceMs?: number | undefined;
}

/** `nobody` when the server knows of none who listens, `silent` when who listens does not answer: both mean that nobody is alive. */
export type Liveness = { kind: "alive"; message: Msg } | { kind: "nobody" | "silent" };

const againMs = 25;
const questions = 4;

/** Asks until it is certain. Rejects with the signal's reason, and when the connection is closed for good. */
export async function askWhetherAlive(bus: Bus, question: Question): Promise<Liveness> {
  for (;;) {
    await bus.link.whenUp(question.signal);
    const told = await askOnceWhetherAlive(bus, question);
    if (told.kind !== "unsure") return told;
    await delay(againMs, question.signal);
  }
}

/** The same, and `unsure` when it cannot be told at the moment. */
export async function askOnceWhetherAlive(bus: Bus, question: Question): Promise<Liveness | { kind: "unsure" }> {
  const { silenceMs = 1_000, subscribedAtMs = Number.NEGATIVE_INFINITY } = question;
  const askedAtMs = performance.now();
  const asked = await askUntilSilent(bus, question, silenceMs);
  if (asked.kind === "alive") return asked;
  if (asked.kind === "lost" || askedAtMs - bus.link.returnedAtMs < silenceMs) return { kind: "unsure" };
  if (asked.kind === "silent") return (await answersPromptly(bus, silenceMs / 2)) ? asked : { kind: "unsure" };
  const isSpreading = bus.connection.info?.cluster !== undefined && Math.abs(Date.now() - subscribedAtMs) < silenceMs;
  return isSpreading ? { kind: "unsure" } : asked;
}

type Asked = Liveness | { kind: "lost" };

async function askUntilSilent(bus: Bus, question: Question, silenceMs: number): Promise<Asked> {
  const heard = Promise.withResolvers<Asked>();
  heard.promise.catch(() => {}); // what fails when nobody waits any more concerns nobody
  for (let count = 0; count < questions; count += 1) {
    const leftMs = silenceMs * (1 - count / questions); // slow answers to earlier questions count, too
    askOnce(bus, question, leftMs).then((asked) => asked.kind !== "silent" && heard.resolve(asked), heard.reject);
    if (await comesWithin(silenceMs / questions, heard.promise)) return heard.promise;
  }
  return { kind: "silent" };
}

async function askOnce(bus: Bus, { subject, text, signal }: Question, timeoutMs: number): Promise<Asked> {
  const { down } = bus.link;
  try {
    const asked = bus.connection.request(subject, text, { timeout: timeoutMs });
    return { kind: "alive", message: await unlessAborted(asked, signal, down) };
  } catch (error) {
    signal?.throwIfAborted();
    if (
      error instanceof errors.ClosedConnectionError ||
      error instanceof errors.DrainingConnectionError ||
      down.aborted
    )
      return { kind: "lost" };
    if (error instanceof errors.TimeoutError) return { kind: "silent" };
    if (isNobody(error)) return { kind: "nobody" };
    throw error;
  }
}

/** Whether nobody listens where something was asked. */
export function isNobody(error: unknown): boolean {
  if (error instanceof errors.NoRespondersError) return true;
  return error instanceof errors.RequestError && error.isNoResponders();
}

async function answersPromptly(bus: Bus, withinMs: number): Promise<boolean> {
  const askedAtMs = performance.now();
  try {
    await unlessAborted(bus.connection.flush(), bus.link.down);
  } catch {
    return false; // the server was lost: that is what was slow
  }
  return performance.now() - askedAtMs < withinMs;
}
