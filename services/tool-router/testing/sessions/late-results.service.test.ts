import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ToolCallState as State } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openSwitcher, type Switcher } from "../fakes/switcher.ts";
import { ExternalService, takeOnly } from "../peers/external-service.ts";

const external = { executionType: ExecutionType.EXTERNAL, visible: false };

describe("results that come when the session has another agent", () => {
  let suite: Switcher;
  beforeAll(async () => {
    suite = await openSwitcher();
    const { catalogue, agents } = suite.clients;
    await catalogue.applyCatalogTool({ tool: { name: "weigh", ...external, timeout: durationFromMs(60_000) } });
    await catalogue.applyCatalogTool({ tool: { name: "order", ...external, isAsync: true } });
    for (const name of ["seller", "buyer"])
      await agents.applyAgent({ agent: { name, tools: { use: ["weigh", "order"] } } });
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  test.for([
    { name: "weigh", how: "for which its agent waited until the switch ended the wait" },
    { name: "order", how: "that was pending before" },
  ])("ORCH-1 TOOL-9 the result of a call $how goes to that agent's inbox alone", async ({ name }) => {
    const { calls, sessions, router } = suite.clients;
    await using service = new ExternalService(calls, { tools: [name] }, takeOnly);
    const sessionId = await suite.openSession("seller");
    const { contextRevision } = await router.listTools({ scope: { case: "session", value: { sessionId } } });
    const request = { sessionId, name, callId: `late-${name}`, argumentsJson: "{}" };
    const calling = suite.clients.call({ ...request, contextRevision }).then(({ output }) => output, String);
    await until(() => service.callIds.includes(request.callId));
    await sessions.switchAgent({ sessionId, agent: "buyer", drainTimeout: durationFromMs(50) });
    expect(JSON.stringify(await calling)).toMatch(
      name === "order" ? /pending/ : /is being switched to agent .*took too long/,
    );

    await expect(suite.clients.call(request)).rejects.toThrow(/belongs to another call, which differs in agent/);
    const { call } = await calls.submitToolResult({
      callId: request.callId,
      outcome: { case: "resultJson", value: '"secret"' },
    });
    expect(call).toMatchObject({ agent: "seller", state: State.RESOLVED, resolvedLate: true });
    const event = await until(() => suite.spaces.inbox.get(`tr:${request.callId}`));
    expect(event).toMatchObject({ sessionId, agent: "seller" });
    await expect(suite.clients.call(request)).rejects.toThrow(/belongs to another call, which differs in agent/);
    await expect(
      calls.submitToolResult({ callId: request.callId, outcome: { case: "resultJson", value: "1" } }),
    ).rejects.toThrow(/already resolved/);
    expect([...suite.spaces.inbox.values()].filter(({ agent }) => agent === "buyer")).toEqual([]);
  });
});
