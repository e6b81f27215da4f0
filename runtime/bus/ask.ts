import { errors, type Msg } from "@nats-io/transport-node";
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
