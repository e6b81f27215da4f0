import { Code, createClient, type HandlerContext } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PING_MAX } from "#runtime/bus/nats-server/server-files.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { openNatsProxy } from "../../../../test/harness/proxy/nats-proxy.ts";
import { deliveryOf } from "../call/delivery.ts";
import { DEFAULT_TIMINGS, type Timings } from "../call/timings.ts";
import { createNatsTransport } from "../client/transport.ts";
import { serveOnNats } from "../server/server.ts";
import { failureOf, readAll } from "../testing/echo-outcome.ts";
import { openEchoProcess } from "../testing/echo-process.ts";
import { DELAY_KEY } from "../testing/echo-program.ts";
import { EchoService } from "../testing/echo-service.ts";
import { type EchoWorld, openConnection, openEchoWorld } from "../testing/echo-world.ts";
import { openHeartbeatTap } from "../testing/heartbeat-tap.ts";

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld({ pingMax: PING_MAX });
});
afterAll(async () => world[Symbol.asyncDispose]());

const quick = { heartbeatMs: 150, silenceMs: 700 };
/** So many heartbeats take three times as long as the silence that would end a call. */
const BEATS_BEYOND_SILENCE = (3 * quick.silenceMs) / quick.heartbeatMs;
const value = new Uint8Array([1]);
let lastService = 0;

function nameService(): string {
  lastService += 1;
  return `dead-peer-${lastService}`;
}

async function openClient(timings?: Timings) {
  const service = nameService();
  const bus = await world.connect();
  return {
    service,
    client: createClient(EchoService, createNatsTransport(bus, { service, ...(timings && { timings }) })),
  };
}

/** A server in this process whose handlers wait for their signal. */
async function openWaiting(service: string, timings: Timings = quick) {
  const contexts: HandlerContext[] = [];
  const wait = (context: HandlerContext) => {
    contexts.push(context);
    return new Promise((resolve) => context.signal.addEventListener("abort", resolve));
  };
  const server = await serveOnNats(await world.connect(), {
    service,
    timings,
    routes: (router) =>
      router.service(EchoService, {
        async unary(_request, context) {
          await wait(context);
          return {};
        },
        async *serverStream(_request, context) {
          yield { value };
          await wait(context);
        },
      }),
  });
  return { contexts, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

describe("a peer that dies", () => {
  test("BUS-2 a server that is killed in mid-stream ends the stream as unavailable within 3 s", async () => {
    const { client, service } = await openClient();
    await using server = await openEchoProcess(world, { role: "server", service });
    let killedAt = 0;
    const answers = client.serverStream({});
    const error = await failureOf(
      readAll(answers, () => {
        server.kill("SIGKILL");
        killedAt = tickedMs();
      }),
    );
    expect(tickedMs() - killedAt).toBeLessThan(3_000);
    expect([error.code, deliveryOf(error)]).toEqual([Code.Unavailable, "UNKNOWN"]);
  });

  test("BUS-2 a server that freezes in mid-stream ends the stream as unavailable after the silence", async () => {
    const { client, service } = await openClient(quick);
    await using server = await openEchoProcess(world, { role: "server", service, timings: quick });
    const error = await failureOf(readAll(client.serverStream({}), () => server.kill("SIGSTOP")));
    expect([error.code, deliveryOf(error)]).toEqual([Code.Unavailable, "UNKNOWN"]);
    expect(error.rawMessage).toContain(`silent for ${quick.silenceMs} ms`);
  });

  test("BUS-2 a client that is killed in mid-stream aborts the handler within 3 s, with the timings of production", async () => {
    const service = nameService();
    await using waiting = await openWaiting(service, DEFAULT_TIMINGS);
    await using client = await openEchoProcess(world, { role: "client", service });
    const [context] = await until(() => client.begun === 1 && waiting.contexts);
    const killedAt = tickedMs();
    client.kill("SIGKILL");
    await until(() => context?.signal.aborted);
    expect(tickedMs() - killedAt).toBeLessThan(3_000);
  });

  test("BUS-2 a client that is killed over a long unary call aborts the handler within 3 s, with the timings of production", async () => {
    const service = nameService();
    await using waiting = await openWaiting(service, DEFAULT_TIMINGS);
    await using tap = await openHeartbeatTap(world);
    await using client = await openEchoProcess(world, { role: "burst", service, calls: 1 });
    const [context] = await until(() => tap.inboxesWith(1) > 0 && waiting.contexts);
    await tap[Symbol.asyncDispose](); // from here on nats-server tells that the inbox is gone
    const killedAt = tickedMs();
    client.kill("SIGKILL");
    await until(() => context?.signal.aborted);
    expect(tickedMs() - killedAt).toBeLessThan(3_000);
  });

  test("BUS-2 a client that freezes in mid-stream aborts the handler after the silence", async () => {
    const service = nameService();
    await using waiting = await openWaiting(service);
    await using client = await openEchoProcess(world, { role: "client", service, timings: quick });
    const [context] = await until(() => waiting.contexts.length > 0 && waiting.contexts);
    client.kill("SIGSTOP");
    await until(() => context?.signal.aborted);
    expect(String(context?.signal.reason)).toContain(`silent for ${quick.silenceMs} ms`);
  });

  test("BUS-2 a unary call whose server freezes is unavailable after the silence, with an unknown outcome", async () => {
    const { client, service } = await openClient(quick);
    await using server = await openEchoProcess(world, { role: "server", service, timings: quick });
    server.kill("SIGSTOP");
    const startedAt = tickedMs();
    const error = await failureOf(client.unary({}));
    expect([error.code, deliveryOf(error)]).toEqual([Code.Unavailable, "UNKNOWN"]);
    expect(tickedMs() - startedAt).toBeLessThan(DEFAULT_TIMINGS.silenceMs);
  });

  test("BUS-2 a server that freezes gets no more calls from nats-server after 3 s", async () => {
    const { client, service } = await openClient(quick);
    await using server = await openEchoProcess(world, { role: "server", service, timings: quick });
    await client.unary({});
    server.kill("SIGSTOP");
    const startedAt = tickedMs();
    await until(async () => (await failureOf(client.unary({}))).rawMessage.includes("nobody serves"));
    expect(tickedMs() - startedAt).toBeLessThan(3_000 + 2 * quick.silenceMs);
  });

  test("BUS-2 a server that freezes over a long unary call ends it after the silence", async () => {
    const { client, service } = await openClient(quick);
    await using server = await openEchoProcess(world, { role: "server", service, timings: quick });
    await using tap = await openHeartbeatTap(world);
    const failure = failureOf(client.unary({}, { headers: { [DELAY_KEY]: "60000" } }));
    await until(() => tap.inboxesWith(BEATS_BEYOND_SILENCE) === 2);
    server.kill("SIGSTOP");
    const error = await failure;
    expect([error.code, error.rawMessage]).toEqual([
      Code.Unavailable,
      expect.stringContaining(`silent for ${quick.silenceMs} ms`),
    ]);
  });
});

describe("one of two instances that is frozen", () => {
  test("BUS-2 LOOP-14 gets no call once its silence was noticed: the other one does, and nothing is unknown", async () => {
    const timings = { heartbeatMs: 250, silenceMs: 2_000 };
    const { client, service } = await openClient(timings);
    const setting = { role: "server", service, timings } as const;
    await using living = await openEchoProcess(world, setting);
    await using frozen = await openEchoProcess(world, setting);
    const answer = async () => Number(Buffer.from((await client.unary({})).value).toString());
    await until(async () => (await answer()) === frozen.pid);
    const begun = frozen.begun;
    frozen.kill("SIGSTOP");
    const first = await until(() =>
      answer().then(
        () => undefined,
        (error: unknown) => error,
      ),
    );
    expect(deliveryOf(first)).toBe("UNKNOWN");
    const outcomes = await Promise.all(Array.from({ length: 40 }, () => answer().catch(String)));
    expect(new Set(outcomes)).toEqual(new Set([living.pid]));
    frozen.kill("SIGCONT");
    await until(async () => (await answer()) === frozen.pid);
    expect(frozen.begun - begun).toBe(1);
  });

  test("BUS-2 when nobody is left who answers, the call was not started, and the error says so", async () => {
    const { client, service } = await openClient(quick);
    await using frozen = await openEchoProcess(world, { role: "server", service, timings: quick });
    await client.unary({});
    frozen.kill("SIGSTOP");
    expect(deliveryOf(await failureOf(client.unary({})))).toBe("UNKNOWN");
    const error = await failureOf(client.unary({}));
    expect([error.code, deliveryOf(error), error.rawMessage]).toEqual([
      Code.Unavailable,
      "NOT_SENT",
      expect.stringContaining(`took the call within ${quick.silenceMs} ms`),
    ]);
  });
});

describe("a caller that hears nothing of its call", () => {
  test.each(["unary", "stream"] as const)(
    "BUS-2 LOOP-14 has not canceled it (%s): the handler is told that the caller was lost",
    async (kind) => {
      const service = nameService();
      await using waiting = await openWaiting(service);
      let isDeaf = false;
      const { port, login } = world.server;
      await using proxy = await openNatsProxy({
        port,
        onFrame: (_, direction) => (isDeaf && direction === "down" ? "drop" : "pass"),
      });
      const connection = await openConnection({ url: `nats://127.0.0.1:${proxy.port}`, login });
      const client = createClient(EchoService, createNatsTransport({ connection }, { service, timings: quick }));
      await using tap = await openHeartbeatTap(world);
      const failure = failureOf(kind === "unary" ? client.unary({}) : readAll(client.serverStream({})));
      const [context] = await until(() => tap.inboxesWith(2) > 0 && waiting.contexts);
      isDeaf = true;
      expect(await failure).toMatchObject({ code: Code.Unavailable });
      await until(() => context?.signal.aborted);
      expect(context?.signal.reason).toMatchObject({ code: Code.Unavailable });
      await connection.close();
    },
  );
});

describe("a peer that is quiet", () => {
  test("BUS-2 heartbeats keep a stream alive on which nothing is said for longer than the silence", async () => {
    const { client, service } = await openClient(quick);
    await using waiting = await openWaiting(service);
    await using tap = await openHeartbeatTap(world);
    const controller = new AbortController();
    const seen: number[] = [];
    const failure = failureOf(
      readAll(client.serverStream({}, { signal: controller.signal }), (answer) => seen.push(answer.value.length)),
    );
    await until(() => tap.inboxesWith(BEATS_BEYOND_SILENCE) === 2);
    expect(waiting.contexts[0]?.signal.aborted).toBe(false);
    controller.abort();
    expect([(await failure).code, seen]).toEqual([Code.Canceled, [1]]);
  });

  test("BUS-2 a unary call that takes long is told that it is worked on, and answers after the silence", async () => {
    const { client, service } = await openClient(quick);
    await using server = await openEchoProcess(world, { role: "server", service, timings: quick });
    const answer = await client.unary({}, { headers: { [DELAY_KEY]: String(4 * quick.silenceMs) } });
    expect(Buffer.from(answer.value).toString()).toBe(String(server.pid));
  });

  test("BUS-2 a caller that aborts a long unary call aborts its handler", async () => {
    const { client, service } = await openClient(quick);
    await using waiting = await openWaiting(service);
    await using tap = await openHeartbeatTap(world);
    const controller = new AbortController();
    const failure = failureOf(client.unary({}, { signal: controller.signal }));
    const [context] = await until(() => tap.inboxesWith(2) > 0 && waiting.contexts);
    controller.abort();
    expect((await failure).code).toBe(Code.Canceled);
    await until(() => context?.signal.aborted);
    expect(String(context?.signal.reason)).toContain("canceled");
  });
});
