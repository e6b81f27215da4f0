import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { HEAD, openTestWorkers, type TestWorkers } from "./workers.ts";

const TOOL = `${HEAD}
import asyncio
from toolbus_sdk import log

def echo(value=None):
    return value

async def wait_long():
    log.info("begun")
    try:
        await asyncio.sleep(60)
    finally:
        log.info("cleaned up")

def spin():
    while True:
        pass
`;

let workers: TestWorkers;

beforeAll(async () => {
  // so that no worker is replaced because it is slow to answer
  workers = await openTestWorkers({ "tool.py": TOOL }, { TOOLBUS_WORKER_CANCEL_GRACE: "10000" });
});
afterAll(() => workers[Symbol.asyncDispose]());

async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => expect.fail("the call succeeded"),
    (error) => ConnectError.from(error),
  );
}

describe("time and canceling", () => {
  const worker = async () => (await workers.service.listWorkers({})).workers[0];

  test("WORK-7 a call whose time is over ends, coroutine or loop, and its worker goes on", async () => {
    await workers.call("tool.echo");
    const before = await worker();
    for (const name of ["tool.wait_long", "tool.spin"]) {
      const failure = await failureOf(workers.call(name, {}, { timeoutMs: 200 }));
      expect(failure.code).toBe(Code.DeadlineExceeded);
      expect(failure.rawMessage).toMatch(/timed out/);
    }
    await until(async () => (await worker())?.callsInFlight === 0);
    expect((await worker())?.processId).toBe(before?.processId);
    expect((await workers.call("tool.echo", { value: 2 })).result).toBe(2);
  });

  test("LOOP-15 a caller that cancels ends the function", async () => {
    await workers.call("tool.echo");
    const lines = workers.watchLogs();
    const cancel = new AbortController();
    const called = failureOf(workers.call("tool.wait_long", {}, { options: { signal: cancel.signal } }));
    const hears = (message: string) => until(() => lines.some(({ log }) => log?.message === message));
    await hears("begun"); // a call in flight may not have begun, and then has nothing to clean up
    cancel.abort();
    expect((await called).code).toBe(Code.Canceled);
    await hears("cleaned up");
    await until(async () => (await worker())?.callsInFlight === 0);
  });
});
