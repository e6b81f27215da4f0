import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openReader, type Reader, readFile, removeFile } from "./testing/peers/reader.ts";

describe("the tool router on the bus", () => {
  let suite: Reader;
  beforeAll(async () => {
    suite = await openReader();
  });
  afterAll(() => suite[Symbol.asyncDispose]());

  test("KIND-1 a call goes to the provider of its source, and its progress and result come back", async () => {
    const sessionId = await suite.openSession();
    const { events, output } = await suite.clients.call({
      sessionId,
      name: "read",
      argumentsJson: '{"path":"a"}',
      callId: "c1",
    });
    expect(events.map((event) => event.case)).toEqual(["progress", "result"]);
    expect(output).toEqual({ path: "a" });
    const request = suite.mcp.calls.find(({ callId }) => callId === "c1");
    expect(request).toMatchObject({ tool: "read_file", source: { name: "files", config: { command: "files" } } });
    expect(request?.scope).toMatchObject({ sessionId, agent: "reader", principal: "local" });
  });

  test("ORCH-2 ORCH-4 the tools of a session have model names, aliases, and say which may be called", async () => {
    const sessionId = await suite.openSession();
    const { tools, agent } = await suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } } });
    expect(agent).toBe("reader");
    expect(tools.map(({ modelName, callable, aliases }) => [modelName, callable, aliases])).toEqual([
      ["ask", true, []],
      ["echo", true, []],
      ["files__read_file", true, ["read"]],
      ["files__remove_file", false, []],
    ]);
  });

  test("ORCH-2 a refused call names agent, tool and rule, is an audit event, and reaches no provider", async () => {
    const sessionId = await suite.openSession();
    const { output, isError } = await suite.clients.call({ sessionId, name: "files__remove_file", callId: "refused" });
    expect(isError).toBe(true);
    expect(output).toEqual({
      error:
        'Agent "reader" may not call tool "@files/remove_file": it is not in tools.allowed. ' +
        'It may call: "ask", "echo", "files__read_file".',
    });
    expect(suite.mcp.calls.map(({ callId }) => callId)).not.toContain("refused");
    const event = await until(async () => {
      const { events } = await suite.clients.audit.listAuditEvents({
        filter: { sessionId, kinds: [AuditKind.BLOCKED] },
      });
      return events[0];
    });
    expect(event).toMatchObject({
      agent: "reader",
      tool: "@files/remove_file",
      rule: "not in tools.allowed",
      callId: "refused",
    });
  });

  test("LOOP-3 a call outside of the run's allowed_tools is refused in these words", async () => {
    const sessionId = await suite.openSession();
    const request = { sessionId, name: "files__read_file", argumentsJson: '{"path":"a"}' };
    const refused = await suite.clients.call({ ...request, allowedTools: { names: ["echo"] } });
    expect(refused.output).toEqual({ error: 'tool "files__read_file" is not in the allowed_tools list' });
    expect((await suite.clients.call({ ...request, allowedTools: { names: ["read"] } })).isError).toBe(false);
  });

  test("arguments that do not fit are told with their path", async () => {
    const { output } = await suite.clients.call({
      sessionId: await suite.openSession(),
      name: "read",
      argumentsJson: '{"path":7}',
    });
    expect(output).toEqual({ error: 'Tool "@files/read_file" refuses its arguments: arguments.path: must be string' });
  });

  test("CTR-3 arguments that do not fit reach no caller", async () => {
    const sessionId = await suite.openSession();
    const inputSchemaJson = '{"type":"object","properties":{"seat":{"type":"integer"}},"required":["seat"]}';
    suite.caller.tools = [{ tool: { name: "myapp_book", inputSchemaJson, executionType: ExecutionType.CALLER } }];
    const book = (argumentsJson: string) => suite.clients.call({ sessionId, name: "myapp_book", argumentsJson });
    const before = suite.caller.calls.length;
    expect((await book('{"seat":"window"}')).output).toEqual({
      error: 'Tool "myapp_book" refuses its arguments: arguments.seat: must be integer',
    });
    expect((await book('{"seat":7}')).isError).toBe(false);
    expect(suite.caller.calls.slice(before).map((call) => call.argumentsJson)).toEqual(['{"seat":7}']);
    suite.caller.tools = [];
  });

  test("ORCH-2 LOOP-3 a caller's tools need no listing, and allowed_tools narrows them", async () => {
    const sessionId = await suite.openSession();
    suite.caller.tools = [{ tool: { name: "myapp_ring", executionType: ExecutionType.CALLER } }];
    const ring = (names?: string[]) =>
      suite.clients.call({ sessionId, name: "myapp_ring", ...(names && { allowedTools: { names } }) });
    expect((await ring()).isError).toBe(false);
    expect((await ring(["myapp_ring"])).isError).toBe(false);
    expect((await ring(["echo"])).output).toEqual({ error: 'tool "myapp_ring" is not in the allowed_tools list' });
    suite.caller.tools = [];
  });

  test("a request that breaks the contract is refused on the bus with the field's name, and reaches no provider", async () => {
    const sessionId = await suite.openSession();
    const refusal = await suite.clients.call({ sessionId, name: "read", callId: "no id" }).catch(String);
    expect(refusal).toMatch(/invalid_argument.*call_id/);
    await expect(suite.clients.sessions.getSession({ sessionId: "" })).rejects.toThrow(/invalid_argument.*session_id/);
    expect(suite.mcp.calls.map(({ callId }) => callId)).not.toContain("no id");
  });

  test("TOOL-2 KIND-4 an internal tool answers with its arguments as they were written", async () => {
    const sessionId = await suite.openSession();
    const echo = async (argumentsJson: string) => {
      const { events } = await suite.clients.call({ sessionId, name: "echo", argumentsJson });
      const last = events.at(-1);
      return last?.case === "result" && last.value.outputJson;
    };
    const written = '{"n": [12345678901234567890, 1e999, 1.10]}';
    expect(await echo(written)).toBe(`{"success":true,"args":${written}}`);
    expect(await echo("")).toBe('{"success":true,"args":{}}');
  });

  test("CTR-1 what a caller declares is seen by the next listing and the next call", async () => {
    const sessionId = await suite.openSession();
    await suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } } });
    suite.caller.tools = [
      { tool: { name: "myapp_pick", effect: Effect.IDEMPOTENT, executionType: ExecutionType.CALLER } },
    ];
    expect((await suite.clients.call({ sessionId, name: "myapp_pick" })).isError).toBe(false);
    const { tools } = await suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } } });
    expect(tools.map(({ modelName }) => modelName)).toContain("myapp_pick");
    suite.caller.tools = [];
    const { tools: fewer } = await suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } } });
    expect(fewer.map(({ modelName }) => modelName)).not.toContain("myapp_pick");
  });

  test("a changed offer reaches the next listing; a provider that went away comes back by itself", async () => {
    const sessionId = await suite.openSession();
    const namesOf = async () =>
      (await suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } } })).tools.map(
        ({ modelName }) => modelName,
      );
    await namesOf();
    suite.mcp.offer([readFile, { source: "files", tool: { name: "list" } }], [{ source: "files", available: true }]);
    await until(async () => (await namesOf()).includes("files__list"));
    await suite.mcpService[Symbol.asyncDispose]();
    await until(async () => {
      const { sources } = await suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } } });
      return sources.some(({ source, available, reason }) => source === "files" && !available && reason !== "");
    });
    suite.use(await suite.startMcp());
    suite.mcp.offer([readFile, removeFile], [{ source: "files", available: true }]);
    await until(async () => (await namesOf()).includes("files__remove_file"));
  });

  test("the tools of an agent without a session, and of the whole catalogue, can be listed", async () => {
    const ofAgent = await suite.clients.router.listTools({ scope: { case: "agent", value: "reader" } });
    expect(ofAgent.tools.map(({ reference }) => reference)).toContain("@files/read_file");
    const { tools, agent } = await suite.clients.router.listTools({});
    expect(agent).toBe("");
    expect(tools.map(({ reference }) => reference)).toEqual(["ask", "echo"]);
    await expect(suite.clients.router.listTools({ scope: { case: "agent", value: "nobody" } })).rejects.toThrow(
      /no agent "nobody"/,
    );
  });

  test("ORCH-11 a page of the trail that begins at nobody's token is refused", async () => {
    for (const pageToken of ["garbage", "-1", "1.5", "1e3"]) {
      const listing = suite.clients.audit.listAuditEvents({ pageToken });
      await expect(listing).rejects.toThrow(/page_token: comes from no previous answer/);
    }
  });

  test("ORCH-11 decisions can be watched live, filtered, from any place in the trail", async () => {
    const sessionId = await suite.openSession();
    const watching = new AbortController();
    const watched: string[] = [];
    const watch = (async () => {
      const filter = { sessionId, kinds: [AuditKind.PERMITTED, AuditKind.BLOCKED] };
      const options = { signal: watching.signal };
      for await (const { update } of suite.clients.audit.watchAuditEvents({ filter, fromSequence: 0n }, options)) {
        if (update.case === "event") watched.push(update.value.tool);
      }
    })().catch(() => {}); // ended by the test
    await suite.clients.call({ sessionId, name: "echo" });
    await suite.clients.call({ sessionId, name: "files__remove_file" });
    await until(() => watched.length === 2);
    expect(watched.sort()).toEqual(["@files/remove_file", "echo"]);
    watching.abort();
    await watch;
  });
});
