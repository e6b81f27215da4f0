import { setImmediate } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { HealthState, type McpServer } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { StoredMcpServerSchema } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { InputKind, type InputRequired } from "#gen/toolbus/provider/v1/input_pb.ts";
import { ProvidedResultSchema } from "#gen/toolbus/provider/v1/provided_result_pb.ts";
import { createChanges } from "#runtime/collections/changes.ts";
import { delay } from "#runtime/time/delay.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { decideHealth, type HealthFinding, watchHealth } from "../link/health.ts";
import { refreshAfter } from "../link/listing/refresh.ts";
import { Calls, type CallWork } from "./calls.ts";
import { closeDeleted } from "./deleted-servers.ts";

const noSignal = new AbortController().signal;

describe("following deleted servers", () => {
  test("goes on after a server that cannot be released, and ends without an error when it is stopped", async () => {
    const changes = createChanges();
    const over = new AbortController();
    let list = ["one", "two"].map((name) => create(StoredMcpServerSchema, { server: { name } }));
    const released: string[] = [];
    const errors: unknown[] = [];
    const connections = {
      releaseServer: async ({ name }: McpServer) => {
        released.push(name);
        if (name === "one") throw new Error("held");
      },
    };
    const onError = (error: unknown) => errors.push(error);
    const applied = { changes, list: () => list };
    const following = closeDeleted({ applied, connections, signal: over.signal, onError });
    for (const count of [1, 2]) {
      list = list.slice(1);
      changes.tell();
      await until(() => released.length === count);
    }
    over.abort();
    await following;
    expect({ released, errors: errors.length }).toEqual({ released: ["one", "two"], errors: 1 });
  });
});

describe("refreshing", () => {
  test("ORCH-7 a storm of requests puts it off no longer than the longest wait, and none are lost", async () => {
    let turns = 0;
    const changes = createChanges();
    const over = new AbortController();
    const refreshing = refreshAfter(changes, over.signal, async () => void turns++);
    const storm = setInterval(() => changes.tell(), 2);
    await until(() => turns >= 2);
    clearInterval(storm);
    const before = turns;
    changes.tell();
    await until(() => turns === before + 1);
    over.abort(new Error("closed"));
    await expect(refreshing).rejects.toThrow("closed");
  });

  test("changes that follow each other soon are worth one turn", async () => {
    let turns = 0;
    const changes = createChanges();
    const over = new AbortController();
    refreshAfter(changes, over.signal, async () => void turns++).catch(() => {}); // ended by the test
    for (let count = 0; count < 5; count++) {
      changes.tell();
      await setImmediate();
    }
    await until(() => turns > 0);
    await delay(150);
    expect(turns).toBe(1);
    over.abort();
  });

  test("is one at a time; what changes meanwhile is worth another turn", async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let begun = 0;
    const changes = createChanges();
    const over = new AbortController();
    refreshAfter(changes, over.signal, () => gates[begun++]?.promise ?? Promise.resolve()).catch(() => {});
    changes.tell();
    await until(() => begun === 1);
    changes.tell();
    changes.tell();
    expect(begun).toBe(1);
    gates[0]?.resolve();
    await until(() => begun === 2);
    gates[1]?.resolve();
    over.abort();
  });
});

describe("health", () => {
  test.for([
    [0, 10, HealthState.HEALTHY],
    [0, 1_001, HealthState.DEGRADED],
    [1, 10, HealthState.DEGRADED],
    [2, 10, HealthState.UNHEALTHY],
  ] as const)("ORCH-8 with %i misses and %i ms is %i", ([misses, latencyMs, health]) => {
    expect(decideHealth(misses, latencyMs)).toBe(health);
  });

  test("ORCH-8 turns yellow at the first miss, red at the second, and green when the server answers again", async () => {
    const clock = createManualClock();
    const over = new AbortController();
    const findings: HealthFinding[] = [];
    let isThere = true;
    const hang = (signal: AbortSignal) =>
      new Promise<void>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const watching = watchHealth({
      healthCheck: {
        $typeName: "toolbus.mcp.v1.HealthCheck",
        interval: durationFromMs(1_000),
        timeout: durationFromMs(100),
      },
      check: (signal) => (isThere ? Promise.resolve() : hang(signal)),
      onFinding: (finding) => findings.push(finding),
      signal: over.signal,
      clock,
    });
    const found = async (count: number) => {
      for (let step = 0; step < 1_000 && findings.length < count; step++) await clock.advance(10);
      return findings[count - 1];
    };
    expect(await found(1)).toMatchObject({ health: HealthState.HEALTHY, reason: "" });
    isThere = false;
    expect(await found(2)).toMatchObject({ health: HealthState.DEGRADED, reason: "no answer within 100 ms" });
    expect(await found(3)).toMatchObject({
      health: HealthState.UNHEALTHY,
      reason: "2 checks missed: no answer within 100 ms",
    });
    isThere = true;
    expect(await found(4)).toMatchObject({ health: HealthState.HEALTHY, reason: "" });
    over.abort();
    await watching;
  });
});

test("ORCH-8 an answer that takes longer than a second is yellow, with its latency and the reason", async () => {
  const clock = createManualClock();
  const over = new AbortController();
  const findings: HealthFinding[] = [];
  const watching = watchHealth({
    healthCheck: {
      $typeName: "toolbus.mcp.v1.HealthCheck",
      interval: durationFromMs(1_000),
      timeout: durationFromMs(5_000),
    },
    check: (signal) => clock.delay(1_200, signal),
    onFinding: (finding) => findings.push(finding),
    signal: over.signal,
    clock,
  });
  for (let step = 0; step < 200 && findings.length === 0; step++) await clock.advance(10);
  expect(findings[0]).toMatchObject({
    health: HealthState.DEGRADED,
    latencyMs: 1_200,
    reason: "answered after 1200 ms",
  });
  over.abort();
  await watching;
});

describe("calls", () => {
  const result = (outputJson: string) =>
    ({ case: "result", value: create(ProvidedResultSchema, { outputJson }) }) as const;
  const joining = (id: string, work: CallWork, signal: AbortSignal) => ({
    ...{ id, work, signal },
    accepted: [],
    responses: undefined,
  });

  test("DOOR-2 a question stands until it is answered, whatever becomes of one that waits behind it", async () => {
    const calls = new Calls();
    const second = new AbortController();
    const over = Promise.withResolvers<void>();
    const question = { case: "elicitation", value: { message: "first" } as never } as const;
    const work: CallWork = async (channel) => {
      await setImmediate();
      const answer = channel.ask(InputKind.FORM, question, noSignal);
      await setImmediate();
      const behind = channel.ask(InputKind.FORM, question, second.signal).catch(() => {});
      second.abort(new Error("the server asks no more"));
      await behind;
      over.resolve();
      return result(await answer);
    };
    const asking = { ...joining("id", work, noSignal), accepted: [InputKind.FORM] };
    const reader = calls.join(asking);
    const required = (await reader.next()).value?.event.value as InputRequired;
    await over.promise;
    const responses = { state: required.state, responses: [{ id: "1", resultJson: '"yes"' }] };
    const answering = calls.join({ ...asking, responses: responses as never });
    const told = await Promise.race([answering.next(), setImmediate("nothing")]);
    expect(told).toMatchObject({ value: { event: { case: "result", value: { outputJson: '"yes"' } } } });
  });

  test("SEC-5 a server asks so many things at once, and no more", async () => {
    const calls = new Calls();
    let refused = 0;
    const work: CallWork = async (channel) => {
      await setImmediate();
      const question = { case: "elicitation", value: { message: "Sure?" } as never } as const;
      for (let count = 0; count < 1_000; count++)
        void channel.ask(InputKind.FORM, question, noSignal).catch(({ reason }) => {
          if (reason === "SHARE_EXCEEDED") refused += 1;
        });
      await setImmediate();
      return result("1");
    };
    for await (const _ of calls.join({ ...joining("id", work, noSignal), accepted: [InputKind.FORM] }));
    expect(refused).toBe(900);
  });

  test.for(["is left", "ends"])("a question is over when its call %s", async (how) => {
    const calls = new Calls();
    const end = Promise.withResolvers<void>();
    let told: unknown = "nothing";
    const work: CallWork = async (channel) => {
      await setImmediate();
      const question = { case: "elicitation", value: { message: "Sure?" } as never } as const;
      void channel.ask(InputKind.FORM, question, noSignal).catch((error) => {
        told = error;
      });
      await end.promise;
      return result("1");
    };
    const reader = calls.join({ ...joining("id", work, noSignal), accepted: [InputKind.FORM] });
    expect((await reader.next()).value?.event.case).toBe("inputRequired");
    if (how === "ends") end.resolve();
    else await reader.return(undefined);
    await setImmediate();
    expect(told).toBeInstanceOf(Error);
  });
});
