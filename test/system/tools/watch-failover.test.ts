// Watches through the gateway while the orchestrators that serve them, and that hold the runs, are killed.

import { create } from "@bufbuild/protobuf";
import { createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { expect, it } from "vitest";
import { Role } from "#gen/toolbus/run/v1/run_pb.ts";
import { InputItemSchema, RunService, type WatchRunResponse } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { until } from "#runtime/time/until.ts";
import { writeCountingAgent } from "../../harness/agents/counting-agent.ts";
import { signalProcess } from "../../harness/processes.ts";
import { openTestSuite } from "../../harness/suite.ts";

const services = ["gateway", "orchestrator", "tool-router", "caller-relay", "spaces"];
const steps = Array.from({ length: 12 }, (_, index) => index + 1);
const textOf = (step: number) => `this is what is said in the turn of number ${step} before a note is made of it all`;
const slowTurn = (step: number) => ({
  text: textOf(step),
  deltaDelayMs: 20,
  calls: [{ name: "note", arguments: { step } }],
});

it("LOOP-10 LOOP-13 a watch through the gateway outlives every orchestrator: no event is missing or told twice, there is one end", async () => {
  await using stack = new AsyncDisposableStack();
  const env = await writeCountingAgent(stack, steps.map(slowTurn));
  const suite = stack.use(await openTestSuite({ isolate: true, services, env, restart: false }));
  const orchestrators = [
    suite.services.find(({ service }) => service === "orchestrator"),
    await suite.start("orchestrator"),
  ];
  const input = create(InputItemSchema, {
    item: { case: "message", value: { role: Role.USER, content: textContent("go") } },
  });
  const runs = suite.connection.client(RunService);
  const created = await Promise.all([1, 2, 3].map(() => runs.createRun({ agent: "counting", input: [input] })));
  const runIds = created.map(({ run }) => run?.id ?? "");

  const watches = runIds.flatMap((runId) =>
    transportsTo(suite.url, suite.apiKey).map((transport) => openWatch(transport, runId)),
  );
  const allHave = (turns: number) =>
    until(() => watches.every((watch) => watch.error !== undefined || watch.turns >= turns), { timeoutMs: 60_000 });
  await allHave(2);
  signalProcess({ pid: orchestrators[0]?.pid }, "SIGKILL");
  await suite.start("orchestrator");
  await allHave(6);
  signalProcess({ pid: orchestrators[1]?.pid }, "SIGKILL"); // each watch was served by one of the two, and each run held
  await Promise.all(watches.map(({ ended }) => ended));

  for (const { updates, error } of watches) {
    expect(error).toBeUndefined();
    const events = updates.flatMap(({ update }) => (update.case === "event" ? [update.value] : []));
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index));
    expect(events.filter(({ event }) => event.case === "ended")).toHaveLength(1);
    expect(events.at(-1)?.event).toMatchObject({ case: "ended", value: { outputText: "done" } });
    expectWordsOfTurns(updates);
  }
}, 150_000);

/** The words that were shown of a turn are, after its resets, the beginning of what it came to. */
function expectWordsOfTurns(updates: readonly WatchRunResponse[]): void {
  let shown = { turn: 0, text: "" };
  for (const { update } of updates) {
    if (update.case === "replaced") shown = { turn: update.value.turn, text: update.value.text };
    if (update.case === "delta" && update.value.delta.case === "text") {
      const { turn, delta } = update.value;
      shown = { turn, text: (shown.turn === turn ? shown.text : "") + delta.value };
    }
    if (update.case !== "event" || update.value.event.case !== "turnCommitted") continue;
    const { turn } = update.value.event.value;
    if (shown.turn === turn) expect(turn > steps.length ? "done" : textOf(turn)).toMatch(new RegExp(`^${shown.text}`));
  }
}

function transportsTo(baseUrl: string, key: string | undefined): Transport[] {
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${key}`);
    return next(request);
  };
  const interceptors = [authorize];
  return [
    createConnectTransport({ baseUrl, httpVersion: "1.1", useBinaryFormat: false, interceptors }),
    createConnectTransport({ baseUrl, httpVersion: "2", interceptors }),
    createGrpcTransport({ baseUrl, interceptors }),
    createGrpcWebTransport({ baseUrl, httpVersion: "1.1", interceptors }),
  ];
}

function openWatch(transport: Transport, runId: string) {
  const watch = { updates: [] as WatchRunResponse[], turns: 0, error: undefined as unknown, ended: Promise.resolve() };
  const read = async () => {
    for await (const response of createClient(RunService, transport).watchRun({
      runId,
      fromSequence: 0n,
      includeDeltas: true,
    })) {
      watch.updates.push(response);
      const { update } = response;
      if (update.case === "event" && update.value.event.case === "turnCommitted") watch.turns += 1;
    }
  };
  watch.ended = read().catch((error: unknown) => {
    watch.error = error;
  });
  return watch;
}
