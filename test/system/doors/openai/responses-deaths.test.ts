// Services that die under a response: its client goes on with it, and nothing is executed twice.

import { afterAll, beforeAll, expect, it } from "vitest";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { openConnection } from "../../../../cli/connection.ts";
import type { TestSuite } from "../../../harness/suite.ts";
import { answered, ask, keys, openResponsesDoor, type Told, toldBy } from "../fixtures/responses-door.ts";

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let other: TestSuite;

beforeAll(async () => {
  ({ suite, other } = await openResponsesDoor(stack, { isolate: true }));
}, 120_000);
afterAll(() => stack.disposeAsync());

const slow = { model: "slow", input: "go", stream: true };
const kill = (from: TestSuite, service: string) =>
  process.kill(from.services.find((running) => running.service === service)?.pid ?? 0, "SIGKILL");

/** What a client has seen, contiguous to the one end, says what the response says. */
function expectWhole(events: readonly Told[]): void {
  expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, n) => n));
  const text = events.filter(({ type }) => type === "response.output_text.delta").map(({ delta }) => delta);
  const terminal = events.filter(({ type }) => type === "response.completed");
  expect(terminal.map(({ response }) => response.output)).toMatchObject([[{ content: [{ text: text.join("") }] }]]);
}

it("LOOP-18 the orchestrator dies under a stream, which goes on as if nothing had been", async () => {
  const events: Told[] = [];
  for await (const event of toldBy(await ask({ url: suite.url }, "POST /v1/responses", slow))) {
    events.push(event);
    if (events.length === 20) kill(suite, "orchestrator");
  }
  expectWhole(events);
}, 60_000);

it("LOOP-18 the gateway dies under a stream: asked again at another one, the response is the same and goes on", async () => {
  const headers = { "idempotency-key": "asked twice" };
  const seen: Told[] = [];
  const read = async () => {
    for await (const event of toldBy(await ask({ url: other.url, headers }, "POST /v1/responses", slow))) {
      seen.push(event);
      if (seen.length === 20) kill(other, "gateway");
    }
  };
  await expect(read()).rejects.toThrow();
  const again = await answered(ask({ url: suite.url, headers }, "POST /v1/responses", { ...slow, stream: false }));
  const { id } = seen[0]?.response ?? {};
  expect(again.id).toBe(id);
  const path = `GET /v1/responses/${id}?stream=true&starting_after=${seen.at(-1)?.sequence_number}`;
  expectWhole([...seen, ...(await Array.fromAsync(toldBy(await ask({ url: suite.url }, path))))]);
  const runs = openConnection({ url: suite.url, apiKey: keys.alice }).client(RunService);
  const { run } = await runs.getRun({ runId: id.replace("resp_", "") });
  expect((await runs.listRuns({ sessionId: run?.sessionId ?? "" })).runs).toHaveLength(1);
}, 60_000);
