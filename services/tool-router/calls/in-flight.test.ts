import { expect, test } from "vitest";
import { SELF } from "#runtime/rpc/identity.ts";
import { success } from "./answers/answer.ts";
import { type CallControl, InFlightCalls } from "./in-flight.ts";

const identity = { sessionId: "s", runId: "", name: "tool", argumentsJson: "{}" };

function waiter(isLost: boolean) {
  const leaving = new AbortController();
  const waiting = { callId: "c", identity, signal: leaving.signal, isLost: () => isLost };
  return { waiting, leave: () => leaving.abort(new Error("left")) };
}

/** A call that ends when `finish` is called, or when it is canceled. */
function openCall() {
  const finish = Promise.withResolvers<void>();
  const controls: CallControl[] = [];
  const start = async (control: CallControl) => {
    controls.push(control);
    control.signal.addEventListener("abort", () => finish.resolve(), { once: true });
    await finish.promise;
    return success(controls.length);
  };
  return { start, controls, finish: finish.resolve };
}

async function resultOf(events: AsyncIterable<{ case: string; value: unknown }>) {
  const all = await Array.fromAsync(events);
  return all.at(-1)?.value;
}

test("a call goes on for those who stay, and is canceled when the last one has canceled", async () => {
  const calls = new InFlightCalls();
  const { start, controls } = openCall();
  const [one, other] = [waiter(false), waiter(false)];
  const [first, second] = [resultOf(calls.join(one.waiting, start)), resultOf(calls.join(other.waiting, start))];
  one.leave();
  await expect(first).rejects.toThrow("left");
  expect(controls[0]?.signal.aborted).toBe(false);
  other.leave();
  await expect(second).rejects.toThrow("left");
  expect(controls).toHaveLength(1);
  expect(controls[0]?.signal.aborted).toBe(true);
});

test("LOOP-13 a caller that was lost finds its call still going when it comes back", async () => {
  const calls = new InFlightCalls();
  const { start, controls, finish } = openCall();
  const lost = waiter(true);
  const first = resultOf(calls.join(lost.waiting, start));
  lost.leave();
  await expect(first).rejects.toThrow("left");
  const again = resultOf(calls.join(waiter(false).waiting, start));
  finish();
  expect(await again).toMatchObject({ outputJson: "1" });
  expect(controls).toHaveLength(1);
});

test("who comes to a call that is being canceled waits for its end and starts it anew", async () => {
  const calls = new InFlightCalls();
  const ending = Promise.withResolvers<void>();
  let started = 0;
  const start = async () => {
    if (++started === 1) await ending.promise;
    return success(started);
  };
  const leaver = waiter(false);
  const first = resultOf(calls.join(leaver.waiting, start));
  leaver.leave();
  await expect(first).rejects.toThrow("left");
  const again = resultOf(calls.join(waiter(false).waiting, start));
  expect(started).toBe(1);
  ending.resolve();
  expect(await again).toMatchObject({ outputJson: "2" });
});

test("LOOP-15 who waits for the end of a call that is being canceled leaves when it cancels", async () => {
  const calls = new InFlightCalls();
  const start = () => new Promise<never>(() => {});
  const [leaver, next] = [waiter(false), waiter(false)];
  const first = resultOf(calls.join(leaver.waiting, start));
  leaver.leave();
  await expect(first).rejects.toThrow("left");
  const second = resultOf(calls.join(next.waiting, start));
  next.leave();
  await expect(second).rejects.toThrow("left");
}, 1_000);

test("LOOP-15 a call that is canceled before anything of it has begun ends with a result that says so, for all who wait", async () => {
  const calls = new InFlightCalls();
  const start = async ({ signal }: CallControl) => {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    signal.throwIfAborted();
    return success("done");
  };
  const waiting = [waiter(false), waiter(false)].map(({ waiting }) => resultOf(calls.join(waiting, start)));
  expect(calls.cancel("c", SELF)).toBe(true);
  const canceled = { isError: true, outputJson: '{"error":"the call was canceled"}' };
  expect(await Promise.all(waiting)).toMatchObject([canceled, canceled]);
});
