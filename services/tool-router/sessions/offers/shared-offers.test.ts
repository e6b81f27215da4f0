import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import {
  GetProvidedToolsResponseSchema,
  ScopeSchema,
  type WatchProvidedToolsResponse,
  WatchProvidedToolsResponseSchema,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { createManualClock } from "#runtime/time/testing/manual-clock.ts";
import { until } from "#runtime/time/until.ts";
import { ended } from "../../testing/fakes/fake-provider.ts";
import { createOfferJudge } from "./fitness/fitness.ts";
import type { ProviderClient } from "./provider-client.ts";
import { ScopeOffers } from "./scope-offers.ts";
import { SharedOffers } from "./shared-offers.ts";

/** Tells what it offers, and again when that changes; counts the streams that are open. */
function createProvider(address: string, sameInAllScopes: boolean) {
  let names = ["one"];
  let isAlike = sameInAllScopes;
  let change = Promise.withResolvers<void>();
  const counts = { open: 0, opened: 0, listed: 0 };
  const offer = () => ({ tools: names.map((name) => ({ source: "", tool: { name } })), sameInAllScopes: isAlike });
  async function* watchTools(
    _: unknown,
    { signal }: { signal: AbortSignal },
  ): AsyncGenerator<WatchProvidedToolsResponse> {
    counts.open += 1;
    counts.opened += 1;
    try {
      while (!signal.aborted) {
        const changed = change.promise;
        yield create(WatchProvidedToolsResponseSchema, offer());
        await Promise.race([changed, ended(signal)]);
      }
    } finally {
      counts.open -= 1;
    }
  }
  const client: ProviderClient = {
    address,
    watchTools,
    async listTools() {
      counts.listed += 1;
      return create(GetProvidedToolsResponseSchema, offer());
    },
    callTool: () => {
      throw new Error("not asked for");
    },
    releaseScope: async () => 0,
  };
  const become = (next: string[], isAlikeNext = isAlike) => {
    [names, isAlike] = [next, isAlikeNext];
    change.resolve();
    change = Promise.withResolvers();
  };
  return { client, counts, become };
}

function openScopes() {
  const clock = createManualClock();
  const judge = createOfferJudge();
  const shared = new SharedOffers({ clock, startupMs: 5_000, judge });
  const options = { clock, startupMs: 5_000, judge, shared, onUnavailable: () => {}, onAvailable: () => {} };
  const open = (providers: Record<string, { client: ProviderClient }>) => {
    const asks = Object.entries(providers).map(([provider, { client }]) => ({ provider, client, sources: [] }));
    return new ScopeOffers(create(ScopeSchema, { sessionId: "s" }), asks, options);
  };
  return { clock, shared, open };
}

const namesOf = (scope: ScopeOffers) => scope.offers.flatMap(({ tools }) => tools.map(({ tool }) => tool?.name));

test("LOOP-16 an offer that is alike in all scopes is followed once for all of them, and its changes reach each", async () => {
  const { clock, shared, open } = openScopes();
  const spaces = createProvider("spaces", true);
  const first = open({ spaces });
  await until(() => first.isSettled && spaces.counts.opened === 2);
  await until(() => clock.sleeping > 1);
  const others = Array.from({ length: 100 }, () => open({ spaces }));
  expect(others.every(({ isSettled }) => isSettled)).toBe(true);
  expect(spaces.counts.opened).toBe(2);
  await clock.advance(60);
  spaces.become(["one", "two"]);
  await until(() => others.every((scope) => namesOf(scope).join() === "one,two"));
  first[Symbol.dispose]();
  for (const scope of others) scope[Symbol.dispose]();
  await clock.advance(1);
  shared.closeIdle(clock.now());
  await until(() => spaces.counts.open === 0);
});

test("a scope that relied on an offer which is alike no more says so, and the next follows it alone", async () => {
  const { clock, shared, open } = openScopes();
  using _shared = shared;
  const fickle = createProvider("fickle", true);
  using _first = open({ fickle });
  await until(() => fickle.counts.opened === 2 && clock.sleeping > 1);
  using sharing = open({ fickle });
  expect([sharing.isOutdated, fickle.counts.opened]).toEqual([false, 2]);
  await clock.advance(60);
  fickle.become(["one"], false);
  await until(() => sharing.isOutdated);
  using _next = open({ fickle });
  expect(fickle.counts.opened).toBe(3);
});

test("an offer that differs by scope is followed in each", async () => {
  const { shared, open } = openScopes();
  using _shared = shared;
  const third = createProvider("third", false);
  using scopes = new DisposableStack();
  for (let count = 0; count < 3; count += 1) scopes.use(open({ third }));
  await until(() => third.counts.open === 3);
});

test("LOOP-16 a caller is asked at each listing, and followed from the first call on", async () => {
  const { shared, open } = openScopes();
  using _shared = shared;
  const caller = createProvider("caller", false);
  using scope = open({ caller });
  await scope.refresh("caller", new AbortController().signal);
  expect([scope.isSettled, scope.isCurrent, namesOf(scope)]).toEqual([true, false, ["one"]]);
  expect(caller.counts).toMatchObject({ listed: 1, opened: 0 });
  scope.follow();
  scope.follow();
  await until(() => scope.isCurrent);
  expect(caller.counts).toMatchObject({ opened: 1 });
});
