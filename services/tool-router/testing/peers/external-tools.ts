import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openTestRouter } from "../test-router.ts";

export type ExternalTools = Awaited<ReturnType<typeof openExternalTools>>;

const external = { executionType: ExecutionType.EXTERNAL, visible: false };

const TOOLS = [
  { name: "weigh", ...external, effect: Effect.PURE, timeout: durationFromMs(20_000) },
  { name: "charge", ...external, timeout: durationFromMs(20_000) }, // its effect is unknown: at most once
  { name: "order", ...external, isAsync: true },
  { name: "reserve", ...external, isAsync: true, ttl: durationFromMs(1_500) },
  { name: "hurry", ...external, timeout: durationFromMs(1_500) },
  { name: "shown", ...external, visible: true, isAsync: true, ttl: durationFromMs(800) },
];

/** Routers that are reached by their own names, tools that services outside execute, an agent that uses them all. */
export function openExternalTools(...names: string[]) {
  return openExternalToolsWith({}, ...names);
}

export async function openExternalToolsWith(env: Record<string, string>, ...names: string[]) {
  const suite = await openTestRouter(env);
  for (const name of names) suite.use(await suite.startRouter(name, name));
  const { catalogue, agents, sessions } = suite.clientsOf(names[0] ?? "");
  for (const tool of TOOLS) await catalogue.applyCatalogTool({ tool });
  await agents.applyAgent({ agent: { name: "buyer", tools: { use: TOOLS.map(({ name }) => name) } } });
  let opened = 0;
  return {
    ...suite,
    async openSession(): Promise<string> {
      const sessionId = `s${++opened}`;
      await sessions.createSession({ agent: "buyer", sessionId });
      return sessionId;
    },
    /** What a call's record says, once it says that. */
    async whenRecorded<T>(callId: string, hold: (call: RecordOf) => T | undefined | false): Promise<T> {
      const { calls } = suite.clientsOf(names[0] ?? "");
      return until(
        async () => {
          const { call } = await calls.getToolCall({ callId }).catch(notYet);
          return call && hold(call);
        },
        { timeoutMs: 20_000 },
      ) as Promise<T>;
    },
  };
}

type RecordOf = NonNullable<
  Awaited<ReturnType<Awaited<ReturnType<typeof openTestRouter>>["clients"]["calls"]["getToolCall"]>>["call"]
>;

function notYet() {
  return { call: undefined };
}
