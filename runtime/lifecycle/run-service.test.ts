import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { freePort } from "../../examples/free-port.ts";
import { until } from "../time/until.ts";
import type { ServiceMessage } from "./run-service.ts";

const fixture = fileURLToPath(new URL("testing/run-service.ts", import.meta.url));

interface Tiny {
  process: ChildProcess;
  output: () => string;
  untilSays: (text: string) => Promise<void>;
  exit: Promise<[code: number | null, signal: string | null]>;
}

function startTiny(behaviour: string, env: Record<string, string> = {}, stdio: SpawnOptions["stdio"] = "pipe"): Tiny {
  const child = spawn(process.execPath, [fixture], {
    env: { PATH: process.env.PATH, BEHAVIOUR: behaviour, ...env },
    stdio,
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  // Not `close`, which does not come after a parent's own disconnect.
  const ends = [child.stdout, child.stderr].map((stream) => stream && once(stream, "end"));
  const exit = Promise.all([once(child, "exit"), ...ends]).then(([codes]) => codes) as Tiny["exit"];
  const untilSays = async (text: string) => {
    await until(() => output.includes(text), { what: `"${text}" in ${JSON.stringify(output)}`, timeoutMs: 30_000 });
  };
  return { process: child, output: () => output, untilSays, exit };
}

test("says that it is ready, drains on SIGTERM and exits with 0, whatever is still open", async () => {
  for (const behaviour of ["drains-slowly", "leaves-a-timer"]) {
    const tiny = startTiny(behaviour);
    await tiny.untilSays('"msg":"ready"');
    expect(tiny.output()).toContain('"url":"http://127.0.0.1:1"');
    tiny.process.kill("SIGTERM");
    expect(await tiny.exit).toEqual([0, null]);
    expect(tiny.output()).toContain("drained");
  }
});

test("with a port for it, tells whether it lives and is ready, until it is asked to stop", async () => {
  const port = await freePort();
  const env = { TOOLBUS_HEALTH_PORT: String(port) };
  const ask = async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status;

  const opening = startTiny("opens-for-ever", env);
  await opening.untilSays("opening");
  expect([await ask("/livez"), await ask("/readyz"), await ask("/")]).toEqual([200, 503, 404]);
  opening.process.kill("SIGTERM");
  expect(await opening.exit).toEqual([0, null]);

  const tiny = startTiny("drains-for-ever", env);
  await tiny.untilSays("ready");
  expect([await ask("/livez"), await ask("/readyz")]).toEqual([200, 200]);

  const second = startTiny("drains-slowly", env);
  expect(await second.exit).toEqual([1, null]);
  expect(second.output()).toContain(`tiny cannot start: TOOLBUS_HEALTH_PORT: cannot listen on 0.0.0.0:${port}`);

  tiny.process.kill("SIGTERM");
  await tiny.untilSays("draining");
  expect([await ask("/livez"), await ask("/readyz")]).toEqual([200, 503]);
  expect(await tiny.exit).toEqual([1, null]);
});

test("a second signal ends it at once, with the code of that signal", async () => {
  for (const [signal, code] of [
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const) {
    const tiny = startTiny("drains-for-ever");
    await tiny.untilSays("ready");
    tiny.process.kill("SIGINT");
    await tiny.untilSays("draining");
    tiny.process.kill(signal);
    expect(await tiny.exit).toEqual([code, null]);
  }
});

test("a drain that hangs is given up after its time, and one that fails is told; both exit with 1", async () => {
  const hanging = startTiny("drains-for-ever");
  await hanging.untilSays("ready");
  hanging.process.kill("SIGTERM");
  expect(await hanging.exit).toEqual([1, null]);
  expect(hanging.output()).toContain("not drained after 500 ms");

  const failing = startTiny("fails-to-drain");
  await failing.untilSays("ready");
  failing.process.kill("SIGTERM");
  expect(await failing.exit).toEqual([1, null]);
  expect(failing.output()).toContain("stopping failed: stuck");
});

test("a failure in opening is one clear line and exit 1", async () => {
  const tiny = startTiny("fails-to-open");
  expect(await tiny.exit).toEqual([1, null]);
  expect(tiny.output().trim().split("\n")).toHaveLength(1);
  expect(JSON.parse(tiny.output())).toMatchObject({
    level: "fatal",
    msg: "tiny cannot start: no bus at nats://127.0.0.1:1",
  });
});

test("BUS-4 a service whose bus is lost before it is ready waits for it", async () => {
  const tiny = startTiny("loses-the-bus");
  await tiny.untilSays("ready");
  expect(tiny.output()).toContain("the bus was lost before it was ready");
  tiny.process.kill("SIGTERM");
  expect(await tiny.exit).toEqual([0, null]);
});

test("a configuration that cannot be read is one line that names every variable, and exit 1", async () => {
  const tiny = startTiny("", { TOOLBUS_REPLICAS: "2", TOOLBUS_HEALTH_PORT: "70000" });
  expect(await tiny.exit).toEqual([1, null]);
  expect(tiny.output().trim().split("\n")).toHaveLength(1);
  expect(tiny.output()).toMatch(
    /^tiny cannot start: .*TOOLBUS_HEALTH_PORT is "70000".*TOOLBUS_REPLICAS is "2".*BEHAVIOUR is not set/,
  );
});

test("a signal while it opens aborts the opening and exits with 0", async () => {
  const tiny = startTiny("opens-for-ever");
  await tiny.untilSays("opening");
  tiny.process.kill("SIGTERM");
  expect(await tiny.exit).toEqual([0, null]);
});

test("a rejection that nobody handles is logged and ends it with exit 1", async () => {
  const tiny = startTiny("rejects");
  expect(await tiny.exit).toEqual([1, null]);
  expect(tiny.output()).toContain("unhandled rejection: nobody caught me");
});

test("tells its parent when it is ready or cannot start, and drains when its parent is gone", async () => {
  const withChannel: SpawnOptions["stdio"] = ["ignore", "pipe", "pipe", "ipc"];
  const tiny = startTiny("drains-slowly", {}, withChannel);
  const [ready] = (await once(tiny.process, "message")) as [ServiceMessage];
  expect(ready).toEqual({ kind: "ready", service: "tiny", announcement: { url: "http://127.0.0.1:1" } });
  tiny.process.disconnect();
  expect(await tiny.exit).toEqual([0, null]);
  expect(tiny.output()).toContain("the parent process is gone");
  expect(tiny.output()).toContain("drained");

  const failing = startTiny("fails-to-open", {}, withChannel);
  const [failed] = (await once(failing.process, "message")) as [ServiceMessage];
  expect(failed).toEqual({
    kind: "failed",
    service: "tiny",
    message: "tiny cannot start: no bus at nats://127.0.0.1:1",
  });
  expect(await failing.exit).toEqual([1, null]);
});
