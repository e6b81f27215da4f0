// Two principals at a gateway with keys: what belongs to a session of one is not for the other.

import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Role, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { InputItemSchema, RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../cli/connection.ts";
import { fixturesIn } from "../../harness/agents/fixtures.ts";
import { openTestSuite } from "../../harness/suite.ts";

const keys = { alice: "alices-key-0123456", mallory: "mallorys-key-01234", scales: "key-of-the-scales-0" };
const patience = { timeoutMs: 60_000 };

const stack = new AsyncDisposableStack();
const clients = {} as Record<keyof typeof keys, ReturnType<typeof clientsWith>>;
const sessionId = "alices";
let runId = "";

beforeAll(async () => {
  const suite = stack.use(
    await openTestSuite({
      services: ["gateway", "tool-router", "orchestrator", "spaces"],
      env: {
        ...fixturesIn("keys"),
        TOOLBUS_API_KEYS: Object.entries(keys)
          .map((pair) => pair.join(":"))
          .join(),
        TOOLBUS_DEFAULT_GRANT: "*",
      },
    }),
  );
  for (const name of Object.keys(keys) as (keyof typeof keys)[]) clients[name] = clientsWith(suite.url, keys[name]);
  const { alice, scales } = clients;
  await until(() => alice.sessions.createSession({ agent: "keeper", sessionId }).catch(() => undefined), patience);
  await alice.spaces.createSpace({ spaceId: "hall" });
  await alice.spaces.enterSpace({ spaceId: "hall", member: { case: "agent", value: { sessionId } } });
  for (const name of ["weigh", "approve"]) await firstOf(alice.router.callTool({ sessionId, name, callId: name }));
  runId = await parkedRun("first");
  for await (const { update } of scales.calls.watchToolCalls({ tools: ["weigh"] })) {
    const deliveryId = update.case === "call" ? update.value.deliveryId : "";
    await scales.calls.acknowledgeToolCall({ callId: "weigh", deliveryId });
    break;
  }
});
afterAll(() => stack.disposeAsync());

function clientsWith(url: string, apiKey: string) {
  const { client } = openConnection({ url, apiKey });
  return {
    runs: client(RunService),
    sessions: client(SessionService),
    router: client(ToolService),
    calls: client(ToolCallService),
    spaces: client(SpaceService),
  };
}

type Clients = ReturnType<typeof clientsWith>;

const input = [
  create(InputItemSchema, { item: { case: "message", value: { role: Role.USER, content: textContent("hello") } } }),
];
const options = { functionTools: [{ name: "ask_client" }] };
const outputs = [{ callId: "asked", outcome: { case: "resultJson" as const, value: "1" } }];

/** A run that waits for its client. */
async function parkedRun(idempotencyKey: string): Promise<string> {
  const { runs } = clients.alice;
  const { run } = await runs.createRun({ sessionId, input, options, idempotencyKey });
  const look = async () => (await runs.getRun({ runId: run!.id })).run?.state === RunState.REQUIRES_ACTION;
  await until(look, { ...patience, what: "the run to wait for its client" });
  return run!.id;
}

/** What only the owner may do, in an order in which the owner can do all of it. */
const attempts: Record<string, (by: Clients) => Promise<unknown>> = {
  "RunService.CreateRun": ({ runs }) => runs.createRun({ sessionId, input }),
  "RunService.GetRun": ({ runs }) => runs.getRun({ runId }),
  "RunService.ListRuns": ({ runs }) => runs.listRuns({ sessionId }),
  "RunService.WatchRun": ({ runs }) => firstOf(runs.watchRun({ runId, fromSequence: 0n })),
  "RunService.WatchRun from its middle": ({ runs }) => firstOf(runs.watchRun({ runId, fromSequence: 2n })),
  "RunService.ForkRun": ({ runs }) => runs.forkRun({ runId, atSequence: 1, input }),
  "RunService.SubmitOutputs": ({ runs }) => runs.submitOutputs({ runId, outputs }),
  "RunService.CancelRun": ({ runs }) => runs.cancelRun({ runId }).catch(unlessEnded),
  "ToolService.ListTools": ({ router }) => router.listTools({ scope: { case: "session", value: { sessionId } } }),
  "ToolService.ExplainTool": ({ router }) =>
    router.explainTool({ scope: { case: "session", value: { sessionId } }, name: "note" }),
  "ToolService.CallTool": ({ router }) => firstOf(router.callTool({ sessionId, name: "note" })),
  "ToolCallService.GetToolCall": ({ calls }) => calls.getToolCall({ callId: "weigh" }),
  "ToolCallService.ReadResult": ({ calls }) =>
    firstOf(calls.readResult({ result: { case: "callId", value: "weigh" } })),
  "ToolCallService.ListToolCalls": ({ calls }) => calls.listToolCalls({ sessionId }),
  "ToolCallService.SubmitToolResult": ({ calls }) =>
    calls.submitToolResult({ callId: "approve", outcome: { case: "resultJson", value: "1" } }),
  "ToolCallService.CancelToolCall": ({ calls }) => calls.cancelToolCall({ callId: "approve" }),
  "SessionService.GetSession": ({ sessions }) => sessions.getSession({ sessionId }),
  "SessionService.WatchSession": ({ sessions }) => firstOf(sessions.watchSession({ sessionId })),
  "SessionService.SwitchAgent": ({ sessions }) => sessions.switchAgent({ sessionId, agent: "keeper" }),
  "SessionService.SetLogLevel": ({ sessions }) => sessions.setLogLevel({ sessionId }),
  "SessionService.CloseSession": ({ sessions }) => sessions.closeSession({ sessionId }),
};

describe("a session of another principal, through the gateway", () => {
  test("ORCH-1 lists without a session hold one's own alone", async () => {
    const { alice, mallory } = clients;
    const { session } = await mallory.sessions.createSession({ agent: "keeper" });
    const own = await mallory.runs.createRun({ sessionId: session!.id, input, options });
    const runsOf = async ({ runs }: Clients) => (await runs.listRuns({})).runs.map(({ id }) => id);
    expect(await runsOf(alice)).toEqual([runId]);
    expect(await runsOf(mallory)).toEqual([own.run!.id]);
    const sessionsOf = async ({ sessions }: Clients) => (await sessions.listSessions({})).sessions.map(({ id }) => id);
    expect(await sessionsOf(alice)).toEqual([sessionId]);
    expect(await sessionsOf(mallory)).toEqual([session!.id]);
    const callsOf = async ({ calls }: Clients) => (await calls.listToolCalls({})).calls.map(({ callId }) => callId);
    expect(await callsOf(alice)).toEqual(["approve", "weigh"]);
    expect(await callsOf(mallory)).toEqual([]);
  });

  test("TOOL-6 who watches for a call and has taken it sees it, and answers it; who is neither does not", async () => {
    const { mallory, scales } = clients;
    expect((await scales.calls.listToolCalls({})).calls.map(({ callId }) => callId)).toEqual(["weigh"]);
    expect((await scales.calls.getToolCall({ callId: "weigh" })).call?.sessionId).toBe(sessionId);
    const answer = { callId: "weigh", outcome: { case: "resultJson", value: '{"grams":3}' } as const };
    await expect(mallory.calls.submitToolResult(answer)).rejects.toThrow(/taken by a watcher of somebody else/);
    expect((await scales.calls.submitToolResult(answer)).call?.result?.outputJson).toBe(answer.outcome.value);
  });

  test("TOOL-7 people who own nothing of it answer through the space", async () => {
    const { alice, mallory } = clients;
    await firstOf(alice.router.callTool({ sessionId, name: "approve", callId: "second" }));
    await mallory.spaces.answerToolCall({
      spaceId: "hall",
      callId: "second",
      outcome: { case: "resultJson", value: '"yes"' },
    });
    expect((await alice.calls.getToolCall({ callId: "second" })).call?.result?.outputJson).toBe('"yes"');
  });

  test("SEC-2 a call of one's own under the id of another's gives nobody the other's answer, wherever it is shown", async () => {
    const { alice, mallory } = clients;
    await firstOf(alice.router.callTool({ sessionId, name: "approve", callId: "third" }));
    const { session } = await mallory.sessions.createSession({ agent: "keeper" });
    const own = { sessionId: session!.id };
    await mallory.spaces.createSpace({ spaceId: "hideout" });
    await mallory.spaces.enterSpace({ spaceId: "hideout", member: { case: "agent", value: own } });
    await firstOf(mallory.router.callTool({ ...own, name: "shout", callId: "third" }));
    const isShown = async () => (await mallory.spaces.listMessages({ spaceId: "hideout" })).messages.length > 0;
    await until(isShown, patience);
    const outcome = { case: "resultJson", value: '"yes"' } as const;
    const answer = mallory.spaces.answerToolCall({ spaceId: "hideout", callId: "third", outcome });
    await expect(answer).rejects.toThrow(/not_found.*"hideout" shows no call third/);
    const { call } = await alice.calls.getToolCall({ callId: "third" });
    expect(call).toMatchObject({ state: ToolCallState.PENDING, spaceId: "hall" });
  });

  test.each(Object.entries(attempts))("ORCH-1 %s is refused to everybody but the owner", async (_, attempt) => {
    const failure = await attempt(clients.mallory).then(() => undefined, failureFromConnectError);
    expect(failure).toMatchObject({ code: "permission_denied", reason: "PRINCIPAL_NOT_OWNER" });
    const asked = [`session ${sessionId}`, `run ${runId}`, "call weigh", "call approve"];
    expect(asked.map((named) => `${named} belongs to another caller`)).toContain(failure?.message);
    if (!String(attempt).includes("sessionId")) expect(JSON.stringify(failure)).not.toContain(sessionId);
  });

  test.each(Object.entries(attempts))("ORCH-1 %s is open to the owner", async (_, attempt) => {
    await attempt(clients.alice);
  });
});

async function firstOf<T>(stream: AsyncIterable<T>): Promise<T | undefined> {
  for await (const value of stream) return value;
  return undefined;
}

function unlessEnded(error: unknown): void {
  const failure = failureFromConnectError(error);
  if (failure.reason !== "RUN_ENDED") throw failure;
}
