import { afterAll, beforeAll, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { textContent } from "#runtime/content/text.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { DEFAULT_GRANT, grantBucket, keyOfPrincipal } from "#runtime/rpc/access/grantees.ts";
import { until } from "#runtime/time/until.ts";
import { auditOf } from "../../../test/harness/bus.ts";
import { clientsOn, openTestSpaces, type TestSpaces } from "./test-spaces.ts";

type Clients = TestSpaces["clients"];

const stack = new AsyncDisposableStack();
let room: TestSpaces;
const by: Record<string, Clients> = {};
const agentOf = (name: string) => ({ sessionId: `${name}s`, agent: "bot" });

beforeAll(async () => {
  room = stack.use(await openTestSpaces());
  for (const name of ["alice", "bob", "mallory"]) {
    by[name] = clientsOn(room.bus, name);
    room.sessions.set(`${name}s`, { principal: name, agent: "bot" });
  }
});
afterAll(() => stack.disposeAsync());

const failureOf = (attempt: Promise<unknown>) => attempt.then(() => undefined, failureFromConnectError);

async function first<T>(stream: AsyncIterable<T>): Promise<T | undefined> {
  for await (const value of stream) return value;
  return undefined;
}

/** Through the agent of the session, as the router asks. */
async function callBuiltIn(name: string, tool: string, value: object): Promise<string> {
  const scope = { ...agentOf(name), principal: name };
  const request = { callId: `${name}-${tool}-${JSON.stringify(value).length}`, tool, scope };
  const events = room.clients.provider.executeTool({ ...request, argumentsJson: JSON.stringify(value) });
  for await (const { event } of events) if (event.case === "result") return event.value.outputJson;
  return "";
}

/** Everything that can be done with a space. */
function attemptsOf(spaceId: string, name: string): Record<string, () => Promise<unknown>> {
  const { spaces } = by[name]!;
  const content = textContent("hello");
  return {
    createSpace: () => spaces.createSpace({ spaceId, title: spaceId }),
    getSpace: () => spaces.getSpace({ spaceId }),
    enterSpace: () => spaces.enterSpace({ spaceId }),
    "enterSpace as an agent": () => spaces.enterSpace({ spaceId, member: { case: "agent", value: agentOf(name) } }),
    sendMessage: () => spaces.sendMessage({ spaceId, content }),
    listMessages: () => spaces.listMessages({ spaceId }),
    watchSpace: () => first(spaces.watchSpace({ spaceId, fromSequence: 0n })),
    answerToolCall: () => spaces.answerToolCall({ spaceId, callId: "c", outcome: { case: "resultJson", value: "1" } }),
    setSpaceGrants: () => spaces.setSpaceGrants({ spaceId, grants: { principals: [name] } }),
  };
}

async function expectRefused(spaceId: string, name: string): Promise<void> {
  for (const [what, attempt] of Object.entries(attemptsOf(spaceId, name)))
    expect(await failureOf(attempt()), what).toMatchObject({
      code: "permission_denied",
      reason: "PRINCIPAL_NOT_GRANTED",
    });
  expect(await callBuiltIn(name, "enter_space", { space_id: spaceId })).toContain("grants");
  expect(await callBuiltIn(name, "read_messages", { space_id: spaceId })).toContain("grants");
  const { spaces } = await by[name]!.spaces.listSpaces({});
  expect(spaces.map(({ id }) => id)).not.toContain(spaceId);
  expect((await failureOf(by[name]!.spaces.getSpace({ spaceId: "nowhere" })))?.message).not.toContain(spaceId);
}

test("SEC-2 a space is for whom it is granted to and for who created it, in person and by agents", async () => {
  const grants = { principals: ["bob"] };
  const { space } = await by.alice!.spaces.createSpace({ spaceId: "board", title: "board", grants });
  expect(space).toMatchObject({ principal: "alice", grants });
  await expectRefused("board", "mallory");
  for (const name of ["alice", "bob"]) {
    const { setSpaceGrants, answerToolCall, ...attempts } = attemptsOf("board", name);
    for (const [what, attempt] of Object.entries(attempts)) expect(await failureOf(attempt()), what).toBeUndefined();
    expect((await failureOf(answerToolCall!()))?.reason, "there is no such call").toBe("CALL_NOT_FOUND");
    expect(await callBuiltIn(name, "read_messages", { space_id: "board" })).toContain("hello");
  }
  expect((await failureOf(attemptsOf("board", "bob").setSpaceGrants!()))?.reason).toBe("PRINCIPAL_NOT_OWNER");
});

test("SEC-2 a grant that is taken back ends what stands on it: watches, what agents hear, show and say", async () => {
  await by.alice!.spaces.createSpace({ spaceId: "team", title: "team", grants: { principals: ["bob"] } });
  for (const name of ["alice", "bob"])
    await by[name]!.spaces.enterSpace({ spaceId: "team", member: { case: "agent", value: agentOf(name) } });
  const say = (text: string) => by.alice!.spaces.sendMessage({ spaceId: "team", content: textContent(text) });
  await say("one");
  await until(async () => (await by.bob!.inbox.listInboxEvents(agentOf("bob"))).events.length === 1);

  const heard: string[] = [];
  const watch = (async () => {
    for await (const { update } of by.bob!.spaces.watchSpace({ spaceId: "team", fromSequence: 0n }))
      heard.push(JSON.stringify(update.value, (_, value) => (typeof value === "bigint" ? String(value) : value)));
  })().catch(failureFromConnectError);
  await until(() => heard.join().includes("one"));
  await by.alice!.spaces.setSpaceGrants({ spaceId: "team", grants: { principals: [] } });
  await until(
    async () => {
      await say("poke");
      return (await Promise.race([watch, undefined]))?.reason === "PRINCIPAL_NOT_GRANTED";
    },
    { intervalMs: 200 }, // so seldom that one page of an inbox shows all of them
  );
  const grants = (await auditOf(room.bus, AuditKind.CONFIGURED)).filter(({ message }) => message.includes("team"));
  expect(grants.map(({ principal, message }) => `${principal}: ${message}`)).toEqual([
    "alice: space team was granted to its creator by alice",
    "alice: space team was granted to bob, its creator by alice",
  ]);
  await say("two");
  await until(async () => {
    const { events } = await by.alice!.inbox.listInboxEvents(agentOf("alice"));
    return JSON.stringify(events.map(({ text }) => text)).includes("two");
  });
  const { events } = await by.bob!.inbox.listInboxEvents(agentOf("bob"));
  expect(JSON.stringify(events.map(({ text }) => text))).not.toContain("two");
  await expectRefused("team", "bob");
  expect(await callBuiltIn("bob", "send_message", { text: "still here" })).toContain("grants");
  const message = { callId: "shown", tool: "t", state: ToolMessageState.RUNNING };
  const shown = by.bob!.toolMessages.recordToolMessage({ ...agentOf("bob"), spaceId: "team", message });
  expect((await failureOf(shown))?.reason).toBe("PRINCIPAL_NOT_GRANTED");
  expect(
    (await by.bob!.spaces.leaveSpace({ spaceId: "team", member: { case: "agent", value: agentOf("bob") } })).left,
  ).toBe(true);
});

test("SEC-2 what has no grants is for those whom gateways name, and a token may grant either", async () => {
  const records = createBucket(room.bus, grantBucket);
  await by.alice!.spaces.createSpace({ spaceId: "hall", title: "hall" });
  await by.alice!.spaces.createSpace({ spaceId: "vault", title: "vault", grants: { principals: [] } });
  expect(await failureOf(by.mallory!.spaces.getSpace({ spaceId: "hall" })), "no gateway has said it").toBeUndefined();
  await records.put(DEFAULT_GRANT, ["bob"]);
  await until(async () => (await failureOf(by.mallory!.spaces.getSpace({ spaceId: "hall" }))) !== undefined);
  await expectRefused("hall", "mallory");
  await by.bob!.spaces.getSpace({ spaceId: "hall" });
  await by.alice!.spaces.getSpace({ spaceId: "hall" });
  expect((await failureOf(by.mallory!.spaces.getSpace({ spaceId: "hall" })))?.message).toBe(
    'space hall has no grants, and so is for those whom TOOLBUS_DEFAULT_GRANT of the gateway names: ask an operator to name "mallory" there, or in its grants',
  );

  await records.put(keyOfPrincipal("mallory"), ["default"]);
  await by.mallory!.spaces.getSpace({ spaceId: "hall" });
  await expectRefused("vault", "mallory");
  await records.put(keyOfPrincipal("mallory"), ["space:hall"]);
  await by.mallory!.spaces.getSpace({ spaceId: "hall" });
  await records.put(keyOfPrincipal("mallory"), ["space:vault"]);
  await by.mallory!.spaces.getSpace({ spaceId: "vault" });
  await records.remove(DEFAULT_GRANT);
});
