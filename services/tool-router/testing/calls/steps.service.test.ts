// The steps of a call, for each kind that the router executes: what an earlier step refuses, no later one sees.

import type { IncomingHttpHeaders } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Builtin, ExecutionType as Kind } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { openWebServer, type WebServer } from "../peers/web-server.ts";
import { openTestRouter, type TestRouter } from "../test-router.ts";

const inputSchemaJson = JSON.stringify({ type: "object", properties: { n: { type: "integer" } }, required: ["n"] });
const policy = { builtin: Builtin.FS_READ, allowedPaths: ["/srv"], allowedCommands: [] };

/** The kinds, and the name that their tool has for the model. */
const kinds = [
  ["gateway", "fetch"],
  ["external", "weigh"],
  ["space", "confirm"],
  ["internal", "echo"],
  ["mcp", "files__read"],
  ["worker", "text__count"],
  ["hosted", "clock"],
  ["builtin", "notes"],
  ["caller", "myapp_pick"],
] as const;

describe("KIND-1 the steps of a call, by kind", () => {
  const stack = new AsyncDisposableStack();
  let server: WebServer;
  let suite: TestRouter;

  beforeAll(async () => {
    server = stack.use(
      await openWebServer(async ({ headers }, response) => {
        await noteRecord(callIdOf(headers));
        response.setHeader("content-type", "application/json").end("{}");
      }),
    );
    suite = stack.use(await openTestRouter({ TOOLBUS_GATEWAY_ALLOW: `127.0.0.1:${server.port}` }));
    const described = { description: "Does it.", inputSchemaJson };
    suite.mcp.offer(
      [{ source: "files", tool: { name: "read", executionType: Kind.MCP, ...described } }],
      [{ source: "files", available: true }],
    );
    suite.pool.offer(
      [
        { source: "text", tool: { name: "count", executionType: Kind.WORKER, ...described } },
        { tool: { name: "clock", executionType: Kind.HOSTED, ...described } },
      ],
      [{ source: "text", available: true }],
    );
    for (const provider of [suite.mcp, suite.pool, suite.caller])
      provider.answer = async function* ({ callId }) {
        await noteRecord(callId);
        yield { event: { case: "result", value: { outputJson: "{}" } } };
      };
    suite.caller.tools = [{ tool: { name: "myapp_pick", executionType: Kind.CALLER, ...described } }];
    for (const service of [suite.startMcp(), suite.startPool(), suite.startRouter("a")]) suite.use(await service);
    const execution = { url: `http://127.0.0.1:${server.port}/`, method: "POST", headers: {} };
    for (const tool of [
      { name: "fetch", executionType: Kind.GATEWAY, execution, visible: false },
      { name: "weigh", executionType: Kind.EXTERNAL, isAsync: true, visible: false },
      { name: "confirm", executionType: Kind.SPACE, isAsync: true },
      { name: "echo", executionType: Kind.INTERNAL },
      { name: "clock", executionType: Kind.HOSTED },
      { name: "notes", executionType: Kind.BUILTIN, builtinPolicy: policy },
    ])
      await suite.clients.catalogue.applyCatalogTool({ tool: { ...described, ...tool } });
    const use = ["fetch", "weigh", "confirm", "echo", "clock", "notes", "@files/*", "@text/*"];
    const sources = [
      { name: "files", provider: "mcp" },
      { name: "text", provider: "worker" },
    ];
    for (const [name, allowed] of [
      ["all", undefined],
      ["one", { names: ["echo"] }],
      ["two", { names: ["fetch"] }],
    ] as [string, { names: string[] } | undefined][]) {
      await suite.clients.agents.applyAgent({ agent: { name, sources, tools: { use, ...(allowed && { allowed }) } } });
      await suite.clients.sessions.createSession({ agent: name, sessionId: name });
      suite.spaces.activeSpaces.set(name, "room");
    }
  });
  afterAll(() => stack.disposeAsync());

  const callIdOf = (headers: IncomingHttpHeaders) => String(headers["idempotency-key"]).replace(/^all\//, "");

  /** How often something outside of the router saw the call; a space has it twice, as running and as what waits for a person. */
  const seen = (callId: string) => {
    const requests = [suite.mcp, suite.pool, suite.caller].flatMap(({ calls }) => calls.map((call) => call.callId));
    const others = [
      ...server.seen.map(({ headers }) => callIdOf(headers)),
      ...suite.spaces.messages.map((message) => message.callId),
    ];
    return [...requests, ...others].filter((one) => one === callId).length;
  };

  /** Whether each call that was executed was on record by then. */
  const recordedFirst = new Map<string, boolean>();
  const noteRecord = async (callId: string) => void recordedFirst.set(callId, await isRecorded(callId));

  const isRecorded = (callId: string) =>
    suite.clients.calls.getToolCall({ callId }).then(
      () => true,
      () => false,
    );

  test.each(kinds)("%s: an unknown name is refused before the policy is asked", async (kind, name) => {
    const call = { sessionId: "one", name: `${name}x`, callId: `name-${kind}`, argumentsJson: '{"n":"x"}' };
    expect((await suite.clients.call(call)).output).toMatchObject({
      error: expect.stringContaining(`There is no tool "${name}x"`),
    });
    expect([seen(call.callId), await isRecorded(call.callId)]).toEqual([0, false]);
  });

  test.each(kinds)("%s: the policy refuses before the arguments are read", async (kind, name) => {
    const sessionId = name === "echo" ? "two" : "one";
    const allowedTools = { names: [name === "echo" ? "clock" : "echo"] };
    const call = { sessionId, name, callId: `policy-${kind}`, argumentsJson: '{"n":"x"}', allowedTools };
    const { output } = await suite.clients.call(call);
    expect(output).toMatchObject({
      error: expect.stringMatching(/not in tools\.allowed|not in the allowed_tools list/),
    });
    expect([seen(call.callId), await isRecorded(call.callId)]).toEqual([0, false]);
  });

  test.each(kinds)("%s: the arguments are refused before the call is recorded", async (kind, name) => {
    const call = { sessionId: "all", name, callId: `arguments-${kind}`, argumentsJson: '{"n":"x"}' };
    expect((await suite.clients.call(call)).output).toMatchObject({
      error: expect.stringContaining("refuses its arguments: arguments.n: must be integer"),
    });
    expect([seen(call.callId), await isRecorded(call.callId)]).toEqual([0, false]);
  });

  test.each(kinds)("%s: the call is recorded before it is executed, once", async (kind, name) => {
    const call = { sessionId: "all", name, callId: `record-${kind}`, argumentsJson: '{"n":1}' };
    const { output } = await suite.clients.call(call);
    expect(output).not.toHaveProperty("error");
    const times = { internal: 0, external: 0, space: 2 }[kind as string] ?? 1;
    expect([seen(call.callId), await isRecorded(call.callId)]).toEqual([times, kind !== "internal"]);
    expect(recordedFirst.get(call.callId)).toBe(times === 1 ? true : undefined);
    const other = await suite.clients.call({ ...call, argumentsJson: '{"n":2}' }).catch(({ message }) => message);
    if (kind === "internal") expect(other).toMatchObject({ output: { args: { n: 2 } } });
    else expect(other).toContain("belongs to another call");
    expect(seen(call.callId)).toBe(times);
  });
});
