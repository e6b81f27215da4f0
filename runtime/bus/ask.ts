import { errors, type Msg } from "@nats-io/transport-node";
import { delay } from "../time/delay.ts";
import { unlessAborted } from "../time/unless-aborted.ts";
import type { Bus } from "./bus.ts";

export interface Question {
  readonly subject: string;
  readonly text?: string | undefined;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * What became of a question to whoever listens on a subject: `silent` when who listens did not answer in time, `nobody` when the
 * server knows of none who listens, `lost` when the link was lost meanwhile.
 */
export type Asked = { kind: "answered"; message: Msg } | { kind: "silent" | "nobody" | "lost" };

/** Asks once. Rejects with the signal's reason. */
export async function askOnce(bus: Bus, { subject, text, timeoutMs, signal }: Question): Promise<Asked> {
  const { down } = bus.link;
  try {
    const asked = bus.connection.request(subject, text, { timeout: timeoutMs });
    return { kind: "answered", message: await unlessAborted(asked, signal, down) };
  } catch (error) {
    signal?.throwIfAborted();
    if (down.aborted) return { kind: "lost" };
    if (error instanceof errors.TimeoutError) return { kind: "silent" };
    if (isNobody(error)) return { kind: "nobody" };
    throw error;
  }
}

export interface LastingQuestion extends Omit<Question, "timeoutMs"> {
  /** In how much time an answer comes if there is one; in that time it is asked `attempts` times. */
  readonly silenceMs: number;
  readonly attempts: number;
  /** Whether it is certain that nobody will answer; else it is asked again. */
  readonly isCertain: (kind: "silent" | "nobody", askedAtMs: number) => boolean | Promise<boolean>;
}

const AGAIN_MS = 25;

/**
 * Asks until somebody answers, or until it is certain that nobody does: then undefined. An answer is believed at once. An error
 * of asking and a loss of the link are no silence. A question that died with the one who had it is heard in the next attempt.
 */
export async function askUntilCertain(bus: Bus, question: LastingQuestion): Promise<Msg | undefined> {
  const { silenceMs, attempts, isCertain, signal, ...asked } = question;
  for (;;) {
    await bus.link.whenUp(signal);
    const askedAtMs = performance.now();
    let answer: Asked = { kind: "silent" };
    for (let attempt = 0; attempt < attempts && answer.kind === "silent"; attempt++) {
      answer = await askOnce(bus, { ...asked, signal, timeoutMs: silenceMs / attempts });
    }
    if (answer.kind === "answered") return answer.message;
    if (answer.kind === "lost") continue;
    if (await isCertain(answer.kind, askedAtMs)) return undefined;
    await delay(AGAIN_MS, signal);
  }
}

/** Whether a request was refused because nobody listens. */
export function isNobody(error: unknown): boolean {
  if (error instanceof errors.NoRespondersError) return true;
  return error instanceof errors.RequestError && error.isNoResponders();
}

/** Whether the server itself answers in that time: else a silence was its own, or this process's, and means nothing. */
export async function answersPromptly(bus: Bus, withinMs: number): Promise<boolean> {
  const askedAt = performance.now();
  try {
    await unlessAborted(bus.connection.flush(), bus.link.down);
  } catch {
    return false; // the server was lost: whoever asks waits for it, and asks again
  }
  return performance.now() - askedAt < withinMs;
}
