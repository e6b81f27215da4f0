import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  ScopeSchema,
  type WatchProvidedToolsResponse,
  WatchProvidedToolsResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { ended } from "../../testing/fakes/fake-provider.ts";
import { createOfferJudge } from "./fitness/fitness.ts";
import type { ProviderClient } from "./provider-client.ts";
import { ScopeOffers } from "./scope-offers.ts";

type Stream = (signal: AbortSignal) => AsyncIterable<WatchProvidedToolsResponse>;

const offering = (...names: string[]) =>
  create(WatchProvidedToolsResponseSchema, { tools: names.map((name) => ({ source: "", tool: { name } })) });

function providerOf(streams: Stream[]): ProviderClient & { opened: () => number } {
  let opened = 0;
  const unused = () => Promise.reject(new Error("not asked for"));
  return {
    address: "fake",
    opened: () => opened,
    listTools: unused,
    watchTools: (_, { signal }) => streams[Math.min(opened++, streams.length - 1)]!(signal),
    callTool: () => ({ [Symbol.asyncIterator]: () => ({ next: unused }) }),
    releaseScope: unused,
  };
}

const lasting = (...names: string[]): Stream =>
  async function* (signal) {
    yield offering(...names);
    await ended(signal);
  };
// biome-ignore lint/correctness/useYield: a provider that never answers
const hanging: Stream = async function* (signal) {
  await ended(signal);
};
// biome-ignore lint/correctness/useYield: a provider that is not there
const absent: Stream = async function* () {
  throw new Failure("unavailable", "nobody serves it", { reason: "SERVICE_UNAVAILABLE" });
};
const brief: Stream = async function* () {
  yield offering("one");
};

function open(providers: Record<string, Stream[]>) {
  const clock = createManualClock();
  const told: string[] = [];
  const clients = new Map(Object.entries(providers).map(([name, streams]) => [name, providerOf(streams)]));
  const asks = [...clients].map(([provider, client]) => ({ provider, client, sources: [] }));
  const onUnavailable = (_: unknown, source: string, reason: string) => told.push(`${source}: ${reason}`);
  const onAvailable = (_: unknown, source: string) => told.push(`${source} is back`);
  const judge = createOfferJudge();
  const options = { clock, startupMs: 5_000, judge, onUnavailable, onAvailable };
  const offers = new ScopeOffers(create(ScopeSchema), asks, options);
  const offerOf = (name: string) => offers.offers.find(({ provider }) => provider === name)!;
  return { clock, told, clients, offers, offerOf };
}

test("ORCH-6 a provider that hangs or is down is unavailable with its reason, and delays no other", async () => {
  const { clock, told, offers, offerOf } = open({ good: [lasting("one")], hung: [hanging], down: [absent] });
  using _ = offers;
  await until(() => offerOf("good").tools.length === 1 && offerOf("down").failure !== "");
  expect(offers.isSettled).toBe(false);
  await clock.advance(5_000);
  expect(offers.isSettled).toBe(true);
  expect(told).toEqual([
    "down: nobody serves it",
    "hung: did not list its tools within 5000 ms: the first message of WatchProvidedTools has to tell them at once",
  ]);
});

test("ORCH-11 nobody is told that a provider is slow of which nobody waits to hear any more", async () => {
  const { clock, told, offers } = open({ hung: [hanging] });
  await until(() => clock.sleeping > 0);
  offers[Symbol.dispose]();
  await until(() => clock.sleeping === 0);
  await clock.advance(5_000);
  expect(told).toEqual([]);
});

test("a stream that ends is opened again within a second, and its tools stay known meanwhile", async () => {
  const { clock, clients, offers, offerOf, told } = open({ shaky: [brief, absent, absent, lasting("one", "two")] });
  using _ = offers;
  await until(() => offerOf("shaky").tools.length === 1 && clock.sleeping > 0);
  expect(offerOf("shaky")).toMatchObject({ failure: "" });
  await clock.advance(1_000);
  expect(clients.get("shaky")?.opened()).toBe(4);
  expect(offerOf("shaky").tools).toHaveLength(2);
  expect(offerOf("shaky").failure).toBe("");
  expect(told).toEqual(["shaky: nobody serves it", "shaky is back"]);
});
