import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { asOperator } from "../../../test/harness/callers.ts";
import { HEAD, openTestWorkers, type TestWorkers } from "./workers.ts";

const TOOL = `${HEAD}
import os, time
from toolbus_sdk import get_secret, progress
from toolbus_sdk.call import running_call

def nap(text: str):
    print("asked for", text)
    os.write(2, b"raw " + text.encode() + b"\\n")
    time.sleep(30)

def crash(text: str):
    print("crashing for", text)
    os._exit(3)

def say(text: str):
    os.write(2, text.encode() + b"\\n")

def write(frame: str):
    call = running_call()
    os.write(call.channel._output, frame.replace("ID", str(call.id)).encode())
    time.sleep(0.2)
    os._exit(3)

def answer_again():
    call = running_call()
    os.write(call.channel._output, b'{"id":%d,"result":"first","error":null}\\n' % call.id)
    time.sleep(0.2)
    return "second"

def close_output():
    os.close(running_call().channel._output)
    return "unheard"

def answer_and_crash():
    send = running_call().channel.send_answer
    def send_and_leave(*parts):
        send(*parts)
        os._exit(3)
    running_call().channel.send_answer = send_and_leave
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    print("a line that the pool waits for")
    return "known"

def touch_nothing():
    import ctypes
    ctypes.string_at(0)

def lists(count: int):
    return [[]] * count

def wait_for(path: str):
    while not os.path.exists(path):
        time.sleep(0.02)
    return "whole"

def tell(length: int):
    progress(1, 2, "with " + get_secret("KEY") + " " + "x" * length)

def fork():
    if os.fork() == 0:
        return "the child"
    os.wait()
    return "the parent"
`;

const SECRET = { config: { secrets: ["KEY"] } };

let workers: TestWorkers;
beforeAll(async () => {
  workers = await openTestWorkers(
    { "tool.py": TOOL },
    {
      TOOLBUS_SECRET_KEY: "hush-hush",
      TOOLBUS_WORKER_BACKOFF: "1",
      TOOLBUS_WORKER_MAX_BACKOFF: "1",
    },
  );
});
afterAll(() => workers[Symbol.asyncDispose]());

const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => expect.fail("the call succeeded"),
    (error) => failureFromConnectError(ConnectError.from(error)),
  );

/** A call that is still under way, whose text has reached the log; its failure is to be waited for. */
async function napping(text: string) {
  const seen = workers.watchLogs(asOperator("olga"));
  const failure = failureOf(workers.call("tool.nap", { text }));
  await until(() => seen.some(({ log }) => log?.message === `raw ${text}`));
  return { failure };
}

describe("what a crash tells", () => {
  test("WORK-8 each call is told its own last words, and nothing that another call wrote", async () => {
    const { failure } = await napping("alpha");
    const crash = await failureOf(workers.call("tool.crash", { text: "beta" }));
    expect(crash.message).toMatch(/ended with code 3: crashing for beta$/);
    expect((await failure).message).toMatch(/ended with code 3: asked for alpha$/);
  }, 60_000);

  test("WORK-8 operators are told where native code has crashed, and not what other calls do", async () => {
    const { failure } = await napping("theta");
    await failureOf(workers.call("tool.touch_nothing"));
    await failure;
    expect(workers.warnings.at(-1)).not.toContain("in nap");
    expect(workers.warnings.at(-1)).toMatch(/ended with SIGSEGV: .*tool\.py", line \d+ in touch_nothing/s);
  });

  test("WORK-8 the first call of a worker is not told where on the machine native code has crashed", async () => {
    await using own = await openTestWorkers({ "tool.py": TOOL });
    expect((await failureOf(own.call("tool.touch_nothing"))).message).toMatch(/ended with SIGSEGV$/);
  });

  test("WORK-8 an answer that came before the crash is the answer of its call, though its log is lost", async () => {
    const { failure } = await napping("kappa");
    expect((await workers.call("tool.answer_and_crash")).result).toBe("known");
    expect((await failure).message).toMatch(/ended with code 3/);
  }, 60_000);

  test("WORK-8 operators are told nothing that a call wrote which had ended before", async () => {
    await using own = await openTestWorkers({ "tool.py": TOOL });
    const seen = own.watchLogs(asOperator("olga"));
    await own.call("tool.say", { text: "zeta" });
    await until(() => seen.some(({ log }) => log?.message.includes("zeta"))); // it comes by another pipe than the result
    await failureOf(own.call("tool.crash", { text: "eta" }));
    await until(() => own.warnings.some((text) => /ended with code 3: crashing for eta$/.test(text)));
  }, 60_000);

  test("WORK-8 no call is told what another one printed, though it looks like the last words of Node", async () => {
    await using own = await openTestWorkers({ "tool.py": TOOL });
    const seen = own.watchLogs(asOperator("olga"));
    await own.call("tool.say", { text: "FATAL ERROR: iota" });
    await until(() => seen.some(({ log }) => log?.message.includes("iota")));
    expect((await failureOf(own.call("tool.crash", { text: "eta" }))).message).toMatch(
      /ended with code 3: crashing for eta$/,
    );
  }, 60_000);

  test("WORK-8 half a frame is told to nobody but operators, nor is it a breach of the protocol", async () => {
    const { failure } = await napping("gamma");
    const half = await failureOf(workers.call("tool.write", { frame: '{"id":ID,"result":"delta' }));
    expect(half.message).toMatch(/ended with code 3$/);
    expect((await failure).message).not.toContain("delta");
  }, 60_000);

  test("WORK-8 who comes while the worker is backed off is told why without the words of calls", async () => {
    const environment = { TOOLBUS_WORKER_BACKOFF: "30s" };
    await using own = await openTestWorkers({ "tool.py": TOOL }, environment);
    for (let count = 0; count < 3; count += 1) await failureOf(own.call("tool.crash", { text: "epsilon" }));
    const refused = await failureOf(own.call("tool.fork"));
    expect(refused.reason).toBe("WORKER_BACKED_OFF");
    expect(refused.message).toMatch(/last: the worker of tool\.py ended with code 3$/);
    const { workers: listed } = await own.service.listWorkers({}, asOperator("olga"));
    expect(listed[0]?.reason).toContain("crashing for epsilon");
  }, 60_000);
});

describe("frames that no call asked for", () => {
  test.each([
    ['{"id":4711,"result":1,"error":null}\n', "it answered call 4711, which it was never given"],
    ['{"id":4711,"progress":{"done":1}}\n', "it answered call 4711, which it was never given"],
    ['{"id":1.5,"result":1,"error":null}\n', "it answered call 1.5, which it was never given"],
    ["hello\n", "it wrote a line of 5 bytes that is no frame"],
    ['hello\n{"id":ID,"result":"late","error":null}\n', "it wrote a line of 5 bytes that is no frame"],
  ])("WORK-5 %j is a fault of the worker, and its calls are told", async (frame, words) => {
    const failure = await failureOf(workers.call("tool.write", { frame }));
    expect(failure).toMatchObject({ code: "unavailable", reason: "WORKER_CRASHED" });
    expect(failure.message).toBe(`the worker of tool.py broke the protocol: ${words}`);
  });

  test("WORK-5 a second answer to one call is a fault of the worker: the first counts, other calls are told", async () => {
    const { failure } = await napping("zeta");
    expect((await workers.call("tool.answer_again")).result).toBe("first");
    expect((await failure).message).toMatch(/broke the protocol: it answered call \d+ twice$/);
  }, 60_000);

  test("WORK-5 a worker whose tool has closed the way to the pool ends at once, and its calls are told", async () => {
    const { failure } = await napping("eta");
    const unheard = await failureOf(workers.call("tool.close_output"));
    for (const { message, reason } of [unheard, await failure]) {
      expect(reason).toBe("WORKER_CRASHED");
      expect(message).toContain("ended with code 1");
    }
  }, 60_000);

  test("WORK-5 a forked child that returns from the function ends there, and answers nothing", async () => {
    expect((await workers.call("tool.fork")).result).toBe("the parent");
  });
});

test("WORK-7 a result of more values than are read is an error of its call only", async () => {
  const path = join(workers.directory, "listed");
  const beside = workers.call("tool.wait_for", { path });
  const listed = await workers.call("tool.lists", { count: 2_100_000 });
  await writeFile(path, "");
  expect((await beside).result).toBe("whole");
  const error = "the result has more than 2000000 objects, lists and members, or 20000000 elements of lists";
  expect(listed).toMatchObject({ isError: true, result: { error } });
}, 60_000);

test("WORK-4 a worker that speaks another version of the protocol is refused, with both versions", async () => {
  const future = `${HEAD}import toolbus_sdk.worker\ntoolbus_sdk.worker.PROTOCOL = 2\ndef f(): return 1\n`;
  await workers.write("future.py", future);
  await until(async () =>
    (await workers.provider.getProvidedTools({})).tools.some(({ source }) => source === "future"),
  );
  const failure = await failureOf(workers.call("future.f"));
  expect(failure).toMatchObject({ code: "failed_precondition", reason: "WORKER_START_FAILED" });
  expect(failure.message).toMatch(
    /speaks version 2 of the protocol, and this pool version 1: start it with the SDK of this/,
  );
}, 60_000);

test("WORK-4 progress is shown without the values of secrets, and in bounded length", async () => {
  const request = {
    callId: "tell",
    source: { name: "tool", ...SECRET },
    tool: "tell",
    argumentsJson: '{"length":50000}',
  };
  const events = await Array.fromAsync(workers.provider.executeTool(request), ({ event }) => event);
  const [message = ""] = events.flatMap((event) => (event.case === "progress" ? [event.value.message] : []));
  expect(message).toMatch(/^with \[secret KEY\] x+… \(\d+ characters\)$/);
  expect(message.length).toBe(1_000);
});
