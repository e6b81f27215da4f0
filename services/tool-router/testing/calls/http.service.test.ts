import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openWebServer, type WebServer } from "../peers/web-server.ts";
import { openTestRouter, type TestRouter } from "../test-router.ts";

describe("tools with a URL, on the bus", () => {
  const stack = new AsyncDisposableStack();
  let server: WebServer;
  let suite: TestRouter;
  beforeAll(async () => {
    server = stack.use(
      await openWebServer(({ url = "" }, response) => {
        if (url.startsWith("/teapot")) response.writeHead(418).end("I am one");
        else response.setHeader("content-type", "application/json").end('{"weather": "fine"}');
      }),
    );
    suite = stack.use(await openTestRouter({ TOOLBUS_GATEWAY_ALLOW: `127.0.0.1:${server.port}` }));
    suite.use(await suite.startRouter("a"));
  });
  afterAll(() => stack.disposeAsync());

  async function apply(name: string, url: string, method = "GET") {
    const execution = { url, method, headers: {} };
    const tool = { name, executionType: ExecutionType.GATEWAY, visible: false, execution };
    return suite.clients.catalogue.applyCatalogTool({ tool });
  }

  async function callAs(agent: string, name: string, argumentsJson = "{}") {
    await suite.clients.agents.applyAgent({ agent: { name: agent, tools: { use: [name] } } });
    const { session } = await suite.clients.sessions.createSession({ agent });
    return { sessionId: session!.id, ...(await suite.clients.call({ sessionId: session!.id, name, argumentsJson })) };
  }

  test("TOOL-3 fetch with their arguments as query, and tell a bad status as an error with its body", async () => {
    await apply("fetchWeather", `http://127.0.0.1:${server.port}/current`);
    const { output } = await callAs("traveller", "fetchWeather", '{"city":"Ulm","days":[1,2]}');
    expect(output).toEqual({ weather: "fine" });
    expect(server.seen.at(-1)).toMatchObject({ method: "GET", url: "/current?city=Ulm&days=1&days=2" });
    await apply("brew", `http://127.0.0.1:${server.port}/teapot`, "POST");
    expect(await callAs("drinker", "brew")).toMatchObject({ isError: true, output: { error: "HTTP 418: I am one" } });
  });

  test("TOOL-3 a URL decides who is called, whatever the kind, but for internal tools, which call nobody", async () => {
    const execution = { url: `http://127.0.0.1:${server.port}/any`, method: "GET", headers: {} };
    for (const executionType of [ExecutionType.EXTERNAL, ExecutionType.HOSTED, ExecutionType.INTERNAL]) {
      await suite.clients.catalogue.applyCatalogTool({
        tool: { name: "somewhere", executionType, visible: false, execution },
      });
      const before = server.seen.length;
      const { output } = await callAs(`kind-${executionType}`, "somewhere", '{"a":1}');
      const isInternal = executionType === ExecutionType.INTERNAL;
      expect(output).toEqual(isInternal ? { success: true, args: { a: 1 } } : { weather: "fine" });
      expect(server.seen.length - before).toBe(isInternal ? 0 : 1);
    }
  });

  test("TOOL-3 lead nowhere inside; the call was permitted and audited, and says what is wrong", async () => {
    await apply("metadata", "http://169.254.169.254/latest/meta-data");
    const { sessionId, output, isError } = await callAs("curious", "metadata");
    expect(isError).toBe(true);
    expect(output).toMatchObject({ error: expect.stringContaining("169.254.169.254 is not a public one") });
    await until(async () => {
      const { events } = await suite.clients.audit.listAuditEvents({ filter: { sessionId } });
      return events.some(({ kind, tool }) => kind === AuditKind.PERMITTED && tool === "metadata");
    });
  });

  test.each([
    ["http://a.example/users/{id}", "GET", /execution\.url: is no template|execution\.url/],
    [`http://a.example/?key=\${secret:KEY}`, "GET", /execution\.url/],
    ["http://user:pass@a.example/", "GET", /without user and password/],
    ["file:///etc/passwd", "GET", /must be an absolute http or https URL/],
    ["http://a.example/", "CONNECT", /execution\.method: CONNECT is no method of a tool/],
  ])("TOOL-1 %s by %s is refused when it is registered", async (url, method, fault) => {
    await expect(apply("bad", url, method)).rejects.toThrow(fault);
  });
});
