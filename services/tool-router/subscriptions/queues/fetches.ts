import type { Msg } from "@nats-io/transport-node";
import type { Bus } from "#runtime/bus/bus.ts";
import { openInbox } from "#runtime/bus/credentials/inbox.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { ensureWorkConsumer, type WorkConsumer } from "#runtime/bus/work-queue/work-consumer.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";

/** How long what is not urgent may lie. */
const FETCH_MS = 500;
/** Without an answer in this time the answer or the consumer is lost, and it is asked again. */
const SILENCE_MS = 5_000;

export interface FetchOptions {
  consumer: WorkConsumer;
  /** How many more can be handled. */
  room(): number;
  onBatch(batch: Msg[]): void;
  onFault(fault: string): void;
}

/** Fetches from a durable consumer twice a second, and at once with `fetchNow`. */
export async function openFetches(bus: Bus, options: FetchOptions): Promise<{ hurry(): void } & Disposable> {
  const { consumer, room, onBatch, onFault } = options;
  const { stream, name } = consumer;
  const closing = new AbortController();
  const ensure = () => ensureWorkConsumer(bus, { ...consumer, signal: closing.signal });
  await ensure();
  const inbox = openInbox(bus.connection);
  let batch: Msg[] = [];
  let asked = 0;
  let askedAt: number | undefined;
  let isUrgent = false;
  let isRestoring = false;

  const subscription = listen(bus, inbox, (message) => {
    const code = message.headers?.code ?? 0;
    if (code === 100) return;
    if (code === 0) batch.push(message);
    if (code !== 0 || batch.length >= asked) finish(code);
  });

  function finish(code: number): void {
    const isFull = batch.length >= asked;
    const fetched = batch;
    batch = [];
    askedAt = undefined;
    if (fetched.length > 0) onBatch(fetched);
    if (code >= 409) void restore();
    else if (isFull || isUrgent) fetch();
  }

  function fetch(): void {
    if (askedAt !== undefined && performance.now() - askedAt < SILENCE_MS) return;
    if (askedAt !== undefined) finish(0);
    asked = Math.min(room(), 512);
    if (asked <= 0 || !bus.link.isUp || closing.signal.aborted) return;
    isUrgent = false;
    askedAt = performance.now();
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${name}`;
    bus.connection.publish(subject, JSON.stringify({ batch: asked, no_wait: true }), { reply: inbox });
  }

  /** A server that lost its store comes back without the consumer. */
  async function restore(): Promise<void> {
    if (isRestoring) return; // as long as it takes
    isRestoring = true;
    try {
      await ensure();
    } catch (error) {
      if (!closing.signal.aborted) onFault(`creating consumer ${name}: ${messageFromUnknown(error)}`);
    }
    isRestoring = false;
  }

  const timer = setInterval(fetch, FETCH_MS);
  const endReturns = bus.link.onReturn(() => {
    askedAt = undefined;
    batch = [];
    void restore();
  });
  fetch();
  return {
    hurry() {
      isUrgent = true;
      fetch();
    },
    [Symbol.dispose]() {
      closing.abort();
      clearInterval(timer);
      endReturns();
      subscription.unsubscribe();
    },
  };
}
