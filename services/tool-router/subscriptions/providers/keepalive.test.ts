import { expect, test } from "vitest";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { createKeepalive } from "./keepalive.ts";

const times = { firstMs: 1, everyMs: 5, answerMs: 20 };
const never = new AbortController().signal;

/** A peer that answers while it lives, and something that is open there until its signal aborts. */
function openPeer() {
  const peer = { lives: true, asked: 0, tells: () => {} };
  const pulse = createKeepalive(async (signal) => {
    peer.asked += 1;
    if (!peer.lives) await delay(60_000, signal);
  }, times);
  async function* open(signal: AbortSignal): AsyncGenerator<string> {
    for (;;) {
      const told = Promise.withResolvers<void>();
      const onAbort = () => told.reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      peer.tells = told.resolve;
      await told.promise;
      signal.removeEventListener("abort", onAbort);
      yield "told";
    }
  }
  const read = (signal = never) => Array.fromAsync(pulse.during(open, signal));
  return { peer, read, pulse };
}

/** A reading that goes on until it is left, unless something else ends it. */
function openReading(read: (signal: AbortSignal) => Promise<unknown>) {
  const leaving = new AbortController();
  const ended = read(leaving.signal)
    .catch(() => {})
    .finally(() => {
      reading.isOver = true;
    });
  const reading = {
    isOver: false,
    leave(): Promise<unknown> {
      leaving.abort();
      return ended;
    },
  };
  return reading;
}

test("KIND-2 a peer that falls silent ends what is open there, as unavailable", async () => {
  const { peer, read } = openPeer();
  const reading = Promise.allSettled([read(), read()]);
  await until(() => peer.asked > 1);
  peer.lives = false;
  const failure = { code: "unavailable", reason: "OUTCOME_UNKNOWN" };
  expect(await reading).toMatchObject([{ reason: failure }, { reason: failure }]);
});

test("keepalive-1 who has nothing open is asked nothing", async () => {
  const { peer, read } = openPeer();
  const leaving = new AbortController();
  const reading = read(leaving.signal).catch((error: unknown) => error);
  await until(() => peer.asked > 0);
  leaving.abort(new Error("left"));
  expect(await reading).toMatchObject({ message: "left" });
  const { asked } = peer;
  const other = openPeer();
  const staying = new AbortController();
  const another = other.read(staying.signal).catch(() => {});
  await until(() => other.peer.asked > 5); // in which time it would have been asked again
  expect(peer.asked).toBe(asked);
  staying.abort();
  await another;
});

test("keepalive-2 a peer that never answered beside something open is not missed", async () => {
  const { peer, read } = openPeer();
  peer.lives = false;
  const reading = openReading(read);
  await until(() => peer.asked > 4);
  expect(reading.isOver).toBe(false);
  await reading.leave();
});

test("keepalive-3 what it tells by itself is a sign of life", async () => {
  const { peer, read } = openPeer();
  const reading = openReading(read);
  await until(() => peer.asked > 0);
  peer.lives = false;
  const from = peer.asked;
  const telling = setInterval(() => peer.tells(), 1);
  await until(() => peer.asked > from + 4);
  clearInterval(telling);
  expect(reading.isOver).toBe(false);
  await reading.leave();
});
