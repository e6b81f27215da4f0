import { afterAll, beforeAll, expect, test } from "vitest";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { openTestBus } from "../../../test/harness/bus.ts";
import { asCaller, asOperator, asPrincipal } from "../../../test/harness/callers.ts";
import { type Bridge, call, oddSource, openBridge } from "./bridge.ts";

const stack = new AsyncDisposableStack();
let bridge: Bridge;

beforeAll(async () => {
  const bus = stack.use(await openTestBus());
  const getSession = ({ sessionId }: { sessionId: string }) =>
    sessionId === "s1"
      ? { session: { id: "s1", principal: "ann" } }
      : refuse("not_found", `there is no session ${sessionId}`, { reason: "SESSION_NOT_FOUND" });
  stack.use(
    await serveOnBus(bus, {
      ...{ service: "tool-router", drainTimeoutMs: 1, logger: { error() {} } },
      routes: (router) => router.service(SessionService, { getSession }),
    }),
  );
  bridge = stack.use(await openBridge(bus));
  await call(bridge, oddSource("odd"), "echo");
});
afterAll(() => stack.disposeAsync());

const reasonOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => "",
    (error) => failureFromConnectError(error).reason,
  );

test("SEC-2 connections of a session are shown to its owner and to operators, and closed by them", async () => {
  const { servers } = bridge;
  const shownTo = async (by: ReturnType<typeof asPrincipal>) =>
    (await servers.listConnections({}, by)).connections.map(({ server }) => server);
  expect(await shownTo(asPrincipal("ann"))).toEqual(["odd"]);
  expect(await shownTo(asOperator("olga"))).toEqual(["odd"]);
  expect(await shownTo(asPrincipal("bob"))).toEqual([]);
  for await (const { connections } of servers.watchConnections({}, asPrincipal("bob"))) {
    expect(connections).toEqual([]);
    break;
  }
  const sessionId = "s1";
  expect(await reasonOf(servers.listConnections({ sessionId }, asPrincipal("bob")))).toBe("PRINCIPAL_NOT_OWNER");
  const watch = servers.watchConnections({ sessionId }, asPrincipal("bob"))[Symbol.asyncIterator]();
  expect(await reasonOf(watch.next())).toBe("PRINCIPAL_NOT_OWNER");
  const asked = { sessionId, agent: "a1" };
  expect(await reasonOf(servers.closeConnections(asked, asPrincipal("bob")))).toBe("PRINCIPAL_NOT_OWNER");
  expect(await shownTo(asPrincipal("ann"))).toEqual(["odd"]);
  expect((await servers.closeConnections(asked, asPrincipal("ann"))).closedCount).toBe(1);
});

test("SEC-2 what servers offer in a session that does not exist is refused at once, to operators and services too", async () => {
  const { content } = bridge;
  const source = { sessionId: "unborn", source: "odd" };
  const [uri, name] = ["odd://private", "greet"];
  for (const by of [asPrincipal("bob"), asOperator("olga"), asCaller({ service: "gateway", isOperator: false })]) {
    const watched = { sessionId: "unborn", resources: [{ source: "odd", uri }] };
    const reference = { case: "prompt", value: name } as const;
    const attempts = {
      watch: () => content.watchResources(watched, by)[Symbol.asyncIterator]().next(),
      list: () => content.listResources({ source }, by),
      templates: () => content.listResourceTemplates({ source }, by),
      read: () => content.readResource({ source, uri }, by),
      prompts: () => content.listPrompts({ source }, by),
      prompt: () => content.getPrompt({ source, name }, by),
      complete: () => content.complete({ source, reference, argument: name }, by),
      subscribe: () => content.subscribeResource({ source, uri }, by),
      unsubscribe: () => content.unsubscribeResource({ sessionId: "unborn", uri }, by),
    };
    for (const [what, attempt] of Object.entries(attempts))
      expect(await reasonOf(attempt()), what).toBe("SESSION_NOT_FOUND");
  }
});
