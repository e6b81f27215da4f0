import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Session, SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { serveOnNats } from "#runtime/rpc/nats/server/server.ts";
import { until } from "#runtime/time/until.ts";
import { openTestRouter } from "../test-router.ts";
import { FakeRuns } from "./fake-runs.ts";

export type Switcher = Awaited<ReturnType<typeof openSwitcher>>;

const COLOURS = ["red", "blue", "green"];

/** Agents that differ in nothing but their name and the source of their tool, which answers whose it is; two routers. */
export async function openSwitcher(env: Record<string, string> = {}) {
  const suite = await openTestRouter(env);
  const { clients, mcp } = suite;
  const routers = [suite.use(await suite.startRouter("a")), suite.use(await suite.startRouter("b"))];
  const mcpService = suite.use(await suite.startMcp());
  const runs = new FakeRuns();
  suite.use(await serveOnNats(suite.bus, { service: "orchestrator", routes: runs.routes, drainTimeoutMs: 1 }));
  mcp.offer(
    COLOURS.map((colour) => ({ source: `${colour}_files`, tool: { name: "whose", executionType: ExecutionType.MCP } })),
    COLOURS.map((colour) => ({ source: `${colour}_files`, available: true })),
  );
  await clients.catalogue.applyCatalogTool({
    tool: { name: "ask", executionType: ExecutionType.SPACE, timeout: durationFromMs(30_000) },
  });
  await clients.catalogue.applyCatalogTool({ tool: { name: "echo", executionType: ExecutionType.INTERNAL } });
  for (const name of COLOURS) {
    const use = [`@${name}_files/*`, "echo", ...(name === "green" ? ["ask"] : [])];
    const tools = { use, aliases: { mine: `@${name}_files/whose` } };
    await clients.agents.applyAgent({ agent: { name, sources: [{ name: `${name}_files`, provider: "mcp" }], tools } });
  }
  const holds = new Map<string, Promise<void>>();
  const answerWhose = () => {
    mcp.answer = async function* ({ callId, scope, source }) {
      await holds.get(callId);
      const whose = { agent: scope?.agent, sessionId: scope?.sessionId, source: source?.name };
      yield { event: { case: "result", value: { outputJson: JSON.stringify(whose) } } };
    };
  };
  answerWhose();
  let opened = 0;
  return {
    ...suite,
    routers,
    mcpService,
    runs,
    answerWhose,
    hold: (callId: string, until: Promise<void>) => void holds.set(callId, until),
    async openSession(agent: string): Promise<string> {
      const sessionId = `s${++opened}`;
      await clients.sessions.createSession({ agent, sessionId });
      return sessionId;
    },
    /** Applies an agent and takes away the provider that it needs. */
    async breakAgent(name: string): Promise<void> {
      await clients.providers.applyProvider({
        provider: { name: "gone", address: { case: "service", value: "mcp-bridge" } },
      });
      await clients.agents.applyAgent({ agent: { name, sources: [{ name: "x", provider: "gone" }] } });
      await clients.providers.deleteProvider({ name: "gone" });
    },
    async reaches(sessionId: string, state: SessionState): Promise<void> {
      await until(async () => (await clients.sessions.getSession({ sessionId })).session?.state === state);
    },
    /** All states of a session from now on. */
    watch(sessionId: string) {
      const states: Session[] = [];
      const ended = (async () => {
        for await (const { session } of clients.sessions.watchSession({ sessionId })) if (session) states.push(session);
      })();
      return { states, ended };
    },
  };
}
