import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import type { WorkerLogLine } from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { runInTrace } from "#runtime/telemetry/trace-context.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { asOperator, asPrincipal } from "../../../test/harness/callers.ts";
import { HEAD, openTestWorkers, type TestWorkers } from "./workers.ts";

const TOOL = `${HEAD}
import asyncio, os, subprocess, sys, time, random
from toolbus_sdk import get_config, get_secret, log, progress

def echo(value=None):
    return value

def noisy(value, storm: int = 0):
    print("noise " * (value % 7))
    os.write(1, b'{"id":1,"result":"stolen","error":null}\\n')
    if value % 50 == 0:
        subprocess.run(["echo", "from a child"])
    time.sleep(random.random() / 300)
    return value

async def later(value):
    await asyncio.sleep(random.random() / 300)
    print("later", value)
    return value

def flood():
    for _ in range(16):
        sys.stderr.write("e" * 65536)
        os.write(2, b"r" * 65536)
    return "done"

def steps():
    log.info("begin", step=1)
    for number in range(3):
        progress(number + 1, 3, "going")
    log.error("end")
    return "ok"

def given():
    return [get_config("region"), get_secret("KEY")]

def leak():
    print("the key is", get_secret("KEY"))
    raise ValueError("bad key " + get_secret("KEY"))

def environment():
    return dict(os.environ)

def fail():
    raise ValueError("bad")

def no_json():
    return {1, 2}

def big():
    return 2**64 + 1

def count():
    with open(os.environ["HOME"] + "/counted", "a") as file:
        file.write("x")
    time.sleep(0.2)
    return 1
`;

let workers: TestWorkers;

beforeAll(async () => {
  workers = await openTestWorkers(
    { "tool.py": TOOL },
    { TOOLBUS_SECRET_KEY: "hush-hush", TOOLBUS_SECRET_OTHER: "other!" },
  );
});
afterAll(() => workers[Symbol.asyncDispose]());

const SECRET = { config: { secrets: ["KEY"], config: { region: "eu" } } };

async function failureOf(call: Promise<unknown>): Promise<ConnectError> {
  return call.then(
    () => expect.fail("the call succeeded"),
    (error) => ConnectError.from(error),
  );
}

describe("answers", () => {
  test("WORK-3 the first call starts the worker, later calls use it", async () => {
    await workers.call("tool.echo");
    const [before] = (await workers.service.listWorkers({})).workers;
    for (let count = 0; count < 5; count += 1) await workers.call("tool.echo", { value: count });
    const after = (await workers.service.listWorkers({})).workers;
    expect(after.map(({ processId }) => processId)).toEqual([before?.processId]);
    expect(after[0]?.callsTotal).toBe((before?.callsTotal ?? 0n) + 5n);
  });

  test("WORK-4 values of every kind come back as they went, large ones too", async () => {
    const values = [null, true, "ä\u2028\n😀", [1, { a: [] }], 1.5, "x".repeat(3_000_000)];
    for (const value of values) expect((await workers.call("tool.echo", { value })).result).toEqual(value);
  });

  test("WORK-4 a result passes byte for byte: numbers keep the digits that JavaScript would lose", async () => {
    const outputs: string[] = [];
    for await (const { event } of workers.provider.executeTool({
      callId: "big",
      source: { name: "tool" },
      tool: "big",
    })) {
      if (event.case === "result") outputs.push(event.value.outputJson);
    }
    expect(outputs).toEqual(["18446744073709551617"]);
  });

  test("WORK-7 an exception is the call's error, its traceback stands in the log", async () => {
    const called = await workers.call("tool.fail");
    expect(called).toMatchObject({ isError: true, result: { error: "ValueError: bad" } });
    expect(called.logs.join()).toContain('raise ValueError("bad")');
  });

  test("WORK-7 a result that is not JSON and a wrong argument fail their own call only", async () => {
    const [noJson, wrong, good] = await Promise.all([
      workers.call("tool.no_json"),
      workers.call("tool.echo", { nothing: 1 }),
      workers.call("tool.echo", { value: 1 }),
    ]);
    expect(noJson.result).toEqual({
      error: "the result is not JSON: TypeError: Object of type set is not JSON serializable",
    });
    expect(wrong.result).toEqual({ error: "TypeError: got an unexpected keyword argument 'nothing'" });
    expect(good).toMatchObject({ isError: false, result: 1 });
  });

  test("what cannot be called is refused before anything is started", async () => {
    expect((await failureOf(workers.call("tool._echo"))).code).toBe(Code.NotFound);
    expect((await failureOf(workers.call("absent.echo"))).code).toBe(Code.NotFound);
    const request = { callId: "c", source: { name: "tool" }, tool: "echo", argumentsJson: "[1]" };
    expect((await failureOf(Array.fromAsync(workers.provider.executeTool(request)))).message).toContain(
      "are no JSON object",
    );
  });
});

describe("calls in flight together", () => {
  test("WORK-5 no call ever gets another's result, whatever the tool prints", async () => {
    const numbers = Array.from({ length: 600 }, (_, index) => index);
    const functions = ["tool.echo", "tool.noisy", "tool.later"];
    const wrong: unknown[] = [];
    await Promise.all(
      numbers.map(async (value) => {
        const { result } = await workers.call(functions[value % 3] ?? "", { value });
        if (result !== value) wrong.push([value, result]);
      }),
    );
    expect(wrong).toEqual([]);
  }, 60_000);

  test("WORK-5 megabytes on stderr block nothing", async () => {
    expect((await workers.call("tool.flood")).result).toBe("done");
    expect((await workers.call("tool.echo", { value: 1 })).result).toBe(1);
  });

  test("a second call with the same id joins the first, or gets its answer", async () => {
    const home = workers.directory;
    await using own = await openTestWorkers({ "tool.py": TOOL }, { HOME: home });
    const together = [own.call("tool.count", {}, { callId: "same" }), own.call("tool.count", {}, { callId: "same" })];
    expect((await Promise.all(together)).map(({ result }) => result)).toEqual([1, 1]);
    expect((await own.call("tool.count", {}, { callId: "same" })).result).toBe(1);
    expect(await readFile(`${home}/counted`, "utf8")).toBe("x");
  }, 60_000);
});

describe("logs and progress", () => {
  test("WORK-6 progress and logs come before the one result", async () => {
    const events = await Array.fromAsync(
      workers.provider.executeTool({ callId: "steps", source: { name: "tool" }, tool: "steps" }),
      ({ event }) => event,
    );
    expect(events.at(-1)).toMatchObject({ case: "result", value: { outputJson: '"ok"' } });
    const logs = events.flatMap((event) => (event.case === "log" ? [event.value] : []));
    expect(logs.map(({ level, message, fieldsJson }) => [level, message, fieldsJson])).toEqual([
      [LogLevel.INFO, "begin", '{"step":1}'],
      [LogLevel.ERROR, "end", ""],
    ]);
    const progress = events.flatMap((event) => (event.case === "progress" ? [event.value.progress] : []));
    expect(progress).toEqual([1, 2, 3]);
  });

  test("SEC-2 lines of a call are shown to its principal and to operators", async () => {
    const [ann, bob, olga] = [asPrincipal("ann"), asPrincipal("bob"), asOperator("olga")].map(workers.watchLogs);
    const scope = { sessionId: "s", agent: "a", principal: "ann" };
    const call = (callId: string) =>
      Array.fromAsync(workers.provider.executeTool({ callId, source: { name: "tool" }, tool: "steps", scope }));
    let calls = 0;
    await until(async () => {
      await call(`before-${calls++}`); // until they watch
      return [ann, olga].every((lines = []) => lines.length > 0);
    });
    await call("anns");
    const seenBy = (lines: readonly WorkerLogLine[] = []) => lines.filter(({ callId }) => callId === "anns").length;
    await until(() => seenBy(ann) === 2 && seenBy(olga) === 2);
    expect(bob).toEqual([]);
  });

  test("WORK-6 every line is labelled with source, function, call and trace, and can be followed", async () => {
    const lines = workers.watchLogs();
    const trace = { traceparent: "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01" };
    await runInTrace(trace, () => {
      const headers = { traceparent: trace.traceparent };
      return workers.call("tool.noisy", { value: 1 }, { callId: "labelled", options: { headers } });
    });
    const line = await until(() => lines.find(({ callId }) => callId === "labelled"));
    expect(line).toMatchObject({ source: "tool", function: "noisy", traceId: "0123456789abcdef0123456789abcdef" });
    expect(line.log?.message).toBe("noise ");
    const raw = await until(() => lines.find(({ log }) => log?.message.includes("stolen")));
    expect(raw).toMatchObject({ source: "tool", callId: "" });
  });

  test("WORK-4 a tool gets the secrets that its entry names and no others; none is in its environment or in a log", async () => {
    const lines = workers.watchLogs();
    expect((await workers.call("tool.given", {}, SECRET)).result).toEqual(["eu", "hush-hush"]);
    expect((await workers.call("tool.given")).result).toEqual({
      error: `LookupError: this tool is not given the secret "KEY"; name it in \`secrets\` of the tool's entry`,
    });
    const environment = JSON.stringify((await workers.call("tool.environment", {}, SECRET)).result);
    expect(environment).toContain("PATH");
    expect(environment).not.toMatch(/hush-hush|other!|TOOLBUS(?!_CHILD)|NATS/);
    const leaked = await workers.call("tool.leak", {}, SECRET);
    expect(leaked.result).toEqual({ error: "ValueError: bad key [secret KEY]" });
    expect(leaked.logs[0]).toBe("the key is [secret KEY]");
    await until(() => lines.some(({ log }) => log?.message.includes("[secret KEY]")));
    expect(JSON.stringify(lines.map(({ log }) => log?.message))).not.toContain("hush-hush");
  });

  test("a secret that is not set is named with its variable", async () => {
    const failure = await failureOf(workers.call("tool.given", {}, { config: { secrets: ["ABSENT"] } }));
    expect(failure.code).toBe(Code.FailedPrecondition);
    expect(messageFromUnknown(failure)).toContain("TOOLBUS_SECRET_ABSENT");
  });
});

const ASKING_FILE = `${HEAD}import asyncio
from toolbus_sdk import call_tool

async def ask(number: int) -> int:
    return sum(await asyncio.gather(*(call_tool("one") for _ in range(number))))
`;
const ASKING_MODULE = `export default { tools: [{ name: "ask", async run({ number }, { registry }) {
  const answers = await Promise.all(Array.from({ length: number }, () => registry.call("one")));
  return answers.reduce((sum, answer) => sum + answer, 0);
} }] };`;

test("SEC-5 what one call asks at once is carried out in turn, and none of it is refused, in Python and in a module", async () => {
  const hosted = await mkdtemp(join(tmpdir(), "toolbus-hosted-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(hosted, { recursive: true }));
  await writeFile(join(hosted, "module.mjs"), ASKING_MODULE);
  let [running, most] = [0, 0];
  const host = {
    async answer() {
      most = Math.max(most, ++running);
      await delay(1);
      running -= 1;
      return { kind: "result", resultJson: "1" } as const;
    },
  };
  const workers = stack.use(await openTestWorkers({ "tool.py": ASKING_FILE }, { TOOLBUS_HOSTED: hosted }, host));
  for (const source of ["tool", "module"]) {
    const config = source === "module" ? { config: { file: "module.mjs" } } : {};
    const { result } = await workers.call(`${source}.ask`, { number: 1_200 }, config);
    expect(result, source).toBe(1_200);
  }
  expect(most).toBe(16);
}, 60_000);
