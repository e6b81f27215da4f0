import { expect, test } from "vitest";
import { success } from "./answers/answer.ts";
import { type CallControl, InFlightCalls } from "./in-flight.ts";

const identity = { sessionId: "s", runId: "", name: "tool", argumentsJson: "{}" };

function passenger(isLost: boolean) {
  const leaving = new AbortController();
  const boarded = { callId: "c", identity, signal: leaving.signal, isLost: () => isLost };
  return { boarded, leave: () => leaving.abort(new Error("left")) };
}

/** A flight that lands when it is told to, or when it is cancelled. */
function openFlight() {
  const land = Promise.withResolvers<void>();
  const controls: CallControl[] = [];
  const start = async (control: CallControl) => {
    controls.push(control);
    control.signal.addEventListener("abort", () => land.resolve(), { once: true });
    await land.promise;
    return success(controls.length);
  };
  return { start, controls, land: land.resolve };
}

async function resultOf(events: AsyncIterable<{ case: string; value: unknown }>) {
  const all = await Array.fromAsync(events);
  return all.at(-1)?.value;
}

test("a call goes on for those who stay, and is cancelled when the last one has cancelled", async () => {
  const flights = new InFlightCalls();
  const { start, controls } = openFlight();
  const [one, other] = [passenger(false), passenger(false)];
  const [first, second] = [resultOf(flights.join(one.boarded, start)), resultOf(flights.join(other.boarded, start))];
  one.leave();
  await expect(first).rejects.toThrow("left");
  expect(controls[0]?.signal.aborted).toBe(false);
  other.leave();
  await expect(second).rejects.toThrow("left");
  expect(controls).toHaveLength(1);
  expect(controls[0]?.signal.aborted).toBe(true);
});

test("LOOP-13 a caller that was lost finds its call still going when it comes back", async () => {
  const flights = new InFlightCalls();
  const { start, controls, land } = openFlight();
  const lost = passenger(true);
  const first = resultOf(flights.join(lost.boarded, start));
  lost.leave();
  await expect(first).rejects.toThrow("left");
  const again = resultOf(flights.join(passenger(false).boarded, start));
  land();
  expect(await again).toMatchObject({ outputJson: "1" });
  expect(controls).toHaveLength(1);
});

test("who comes to a call that is being cancelled waits for its end and starts it anew", async () => {
  const flights = new InFlightCalls();
  const ending = Promise.withResolvers<void>();
  let started = 0;
  const start = async () => {
    if (++started === 1) await ending.promise;
    return success(started);
  };
  const leaver = passenger(false);
  const first = resultOf(flights.join(leaver.boarded, start));
  leaver.leave();
  await expect(first).rejects.toThrow("left");
  const again = resultOf(flights.join(passenger(false).boarded, start));
  expect(started).toBe(1);
  ending.resolve();
  expect(await again).toMatchObject({ outputJson: "2" });
});

test("LOOP-15 a call that is cancelled before anything of it has begun ends with a result that says so, for all who wait", async () => {
  const flights = new InFlightCalls();
  const start = async ({ signal }: CallControl) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    signal.throwIfAborted();
    return success("done");
  };
  const waiting = [passenger(false), passenger(false)].map(({ boarded }) => resultOf(flights.join(boarded, start)));
  expect(flights.cancel("c", undefined)).toBe(true);
  const canceled = { isError: true, outputJson: '{"error":"the call was canceled"}' };
  expect(await Promise.all(waiting)).toMatchObject([canceled, canceled]);
});
