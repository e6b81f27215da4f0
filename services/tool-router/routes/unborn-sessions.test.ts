import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { createSessionOwners } from "#runtime/rpc/access/session-owners.ts";
import { callerKey, callerNamed } from "#runtime/rpc/identity.ts";
import { routeCalls } from "./calls.ts";
import { routeSessions } from "./sessions.ts";

type Handler = (request: object, context: Pick<HandlerContext, "values" | "signal">) => unknown;

/** What a route did of which the test has no parts. */
const passed = new Proxy(() => {}, { get: () => passed, apply: () => Promise.reject(new Error("it went on")) });

test.each([
  "getSession",
  "closeSession",
  "switchAgent",
  "setLogLevel",
  "watchSession",
  "listTools",
  "explainTool",
  "callTool",
])("SEC-2 %s is refused in a session that alice opens a moment later", async (method) => {
  let reads = 0;
  const ownership = createSessionOwners(async () => (reads++ === 0 ? undefined : { principal: "alice" }));
  const handlers: Record<string, Handler> = {};
  const router = { service: (_: unknown, of: Record<string, Handler>) => Object.assign(handlers, of) };
  const { signal } = new AbortController();
  const names = ["sessions", "switching", "catalogue", "inFlight", "carryOut", "contexts", "spaces", "leftUnchecked"];
  const others = Object.fromEntries(names.map((name) => [name, passed]));
  const parts = { ...others, ownership, stopping: signal } as never;
  routeSessions(router as unknown as ConnectRouter, parts);
  routeCalls(router as unknown as ConnectRouter, parts);
  const scope = { case: "session", value: { sessionId: "s" } };
  const request = { sessionId: "s", scope, callId: "c", runContext: new Uint8Array(), name: "t", argumentsJson: "{}" };
  const context = { values: createContextValues().set(callerKey, callerNamed("bob")), signal };
  const asked = async () => {
    const answer = handlers[method]?.(request, context);
    if (answer instanceof Promise) await answer;
    else await (answer as AsyncGenerator).next();
  };
  await expect(asked()).rejects.toMatchObject({ reason: "SESSION_NOT_FOUND" });
});
