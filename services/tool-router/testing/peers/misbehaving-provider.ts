import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ExecuteToolResponseSchema } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { createLogger } from "#runtime/lifecycle/logger.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { FakeProvider } from "../fakes/fake-provider.ts";
import { openTestRouter } from "../test-router.ts";

export type Event = MessageInitShape<typeof ExecuteToolResponseSchema>;

export function resultEvent(outputJson: string, isError = false): Event {
  return { event: { case: "result", value: { outputJson, isError } } };
}

const logger = createLogger({ name: "misbehaving", level: "silent" });

export type MisbehavingWorld = Awaited<ReturnType<typeof openMisbehavingWorld>>;

/** A session of an agent `both` with a source `shop` of an honest provider and a source `lies` of a misbehaving one. */
export async function openMisbehavingWorld() {
  const suite = await openTestRouter({ TOOLBUS_PROVIDER_STARTUP: "300ms" });
  suite.use(await suite.startRouter("a"));
  const honest = new FakeProvider();
  const misbehaving = new FakeProvider();
  const serve = (service: string, { routes }: FakeProvider) =>
    serveOnBus(suite.bus, { service, routes, drainTimeoutMs: 1, logger });
  suite.use(await serve("honest", honest));
  let misbehavingService = await serve("misbehaving", misbehaving);
  suite.use({ [Symbol.asyncDispose]: () => misbehavingService[Symbol.asyncDispose]() });
  honest.tools = [{ source: "shop", tool: { name: "buy" } }];
  misbehaving.tools = [{ source: "lies", tool: { name: "tell" } }];
  const { providers, agents, sessions, router } = suite.clients;
  for (const name of ["honest", "misbehaving"])
    await providers.applyProvider({ provider: { name, address: { case: "service", value: name } } });
  const sources = [
    { name: "shop", provider: "honest" },
    { name: "lies", provider: "misbehaving" },
  ];
  const applyAgent = (name: string) =>
    agents.applyAgent({ agent: { name, sources, tools: { use: ["@shop/*", "@lies/*"] } } });
  await applyAgent("both");
  const sessionId = (await sessions.createSession({ agent: "both" })).session!.id;
  return {
    ...suite,
    misbehaving,
    sessionId,
    applyAgent,
    async listed() {
      const page = (pageToken: string) =>
        router.listTools({ scope: { case: "session", value: { sessionId } }, pageToken, pageSize: 1_000 });
      return (await allPages(page)).flatMap(({ tools }) => tools);
    },
    /** Calls the misbehaving provider's tool. */
    tell: (signal?: AbortSignal) => suite.clients.call({ sessionId, name: "lies__tell", argumentsJson: "{}" }, signal),
    /** Uses the honest provider; fails when the misbehaving provider's deeds reach it. */
    async buyElsewhere(): Promise<void> {
      const bought = await suite.clients.call({ sessionId, name: "shop__buy", argumentsJson: '{"n":1}' });
      if (JSON.stringify(bought.output) !== '{"n":1}') throw new Error(JSON.stringify(bought.output));
    },
    stopMisbehaving: () => misbehavingService[Symbol.asyncDispose](),
    startMisbehaving: async () => {
      misbehavingService = await serve("misbehaving", misbehaving);
    },
  };
}
