import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ToolMessageState as Status } from "#gen/toolbus/space/v1/space_pb.ts";
import { Builtin, ExecutionType as Kind } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { listen } from "#runtime/bus/link/listen.ts";
import { Failure } from "#runtime/failure/failure.ts";
import { until } from "#runtime/time/until.ts";
import { ExternalService, takeOnly } from "../peers/external-service.ts";
import { openWebServer, type WebServer } from "../peers/web-server.ts";
import { openTestRouter, type TestRouter } from "../test-router.ts";

describe("calls that a space shows, of every kind, on the bus", () => {
  const stack = new AsyncDisposableStack();
  let server: WebServer;
  let suite: TestRouter;
  beforeAll(async () => {
    server = stack.use(
      await openWebServer(({ url = "" }, response) => {
        if (url.startsWith("/never")) return;
        if (url.startsWith("/gone")) response.writeHead(410).end("gone");
        else response.setHeader("content-type", "application/json").end('{"weather":"fine"}');
      }),
    );
    suite = stack.use(await openTestRouter({ TOOLBUS_GATEWAY_ALLOW: `127.0.0.1:${server.port}` }));
    suite.mcp.offer([{ source: "files", tool: { name: "read" } }], [{ source: "files", available: true }]);
    suite.use(await suite.startMcp());
    suite.use(await suite.startRouter("a"));
    const execution = (path: string) => ({ url: `http://127.0.0.1:${server.port}${path}`, method: "GET", headers: {} });
    const policy = { builtin: Builtin.FS_READ, allowedPaths: ["/srv"], allowedCommands: [] };
    for (const tool of [
      { name: "fetchWeather", executionType: Kind.GATEWAY, execution: execution("/now") },
      { name: "fetchLost", executionType: Kind.GATEWAY, execution: execution("/gone") },
      { name: "fetchNever", executionType: Kind.GATEWAY, execution: execution("/never") },
      { name: "weigh", executionType: Kind.EXTERNAL, timeout: durationFromMs(20_000) },
      { name: "confirm", executionType: Kind.SPACE, isAsync: true },
      { name: "echo", executionType: Kind.INTERNAL },
      { name: "chart", executionType: Kind.INTERNAL, visible: true },
      { name: "clock", executionType: Kind.HOSTED },
      { name: "notes", executionType: Kind.BUILTIN, builtinPolicy: policy },
    ]) {
      await suite.clients.catalogue.applyCatalogTool({ tool });
    }
    const use = [
      "fetchWeather",
      "fetchLost",
      "fetchNever",
      "weigh",
      "confirm",
      "echo",
      "chart",
      "clock",
      "notes",
      "@files/*",
    ];
    const sources = [{ name: "files", provider: "mcp" }];
    await suite.clients.agents.applyAgent({ agent: { name: "all", sources, tools: { use } } });
    await suite.clients.sessions.createSession({ agent: "all", sessionId: "s" });
    suite.spaces.activeSpaces.set("s", "room");
  });
  afterAll(() => stack.disposeAsync());

  const call = (name: string, callId: string) => suite.clients.call({ sessionId: "s", name, callId });
  const shown = (callId: string) => suite.spaces.messages.filter((message) => message.callId === callId);

  test("TOOL-10 gateway, external and space tools are visible unless they say otherwise, and no other kind is", async () => {
    const { tools } = await suite.clients.router.listTools({ scope: { case: "session", value: { sessionId: "s" } } });
    const visible = tools.filter(({ tool }) => tool?.visible).map(({ modelName }) => modelName);
    expect(visible.toSorted()).toEqual(["chart", "confirm", "fetchLost", "fetchNever", "fetchWeather", "weigh"]);
    const hidden = tools.filter(({ tool }) => tool?.visible === false).map(({ modelName }) => modelName);
    expect(hidden).toEqual(expect.arrayContaining(["clock", "echo", "files__read", "notes"]));
  });

  test("TOOL-10 a gateway tool runs in the space until its response, which is its message's result", async () => {
    expect((await call("fetchWeather", "weather")).output).toEqual({ weather: "fine" });
    await until(() => suite.spaces.statusesOf("weather").includes(Status.COMPLETE));
    expect(suite.spaces.statusesOf("weather")).toEqual([Status.RUNNING, Status.COMPLETE]);
    expect(shown("weather").at(-1)?.result?.outputJson).toBe('{"weather":"fine"}');
  });

  test("TOOL-11 outside a space a gateway tool that is visible asks no server", async () => {
    await suite.clients.sessions.createSession({ agent: "all", sessionId: "outside" });
    const before = server.seen.length;
    const { output } = await suite.clients.call({ sessionId: "outside", name: "fetchWeather", callId: "unseen" });
    expect(output).toEqual({
      error: 'Tool "fetchWeather" is visible but you are not in a space. Call enter_space first.',
    });
    expect(server.seen.length).toBe(before);
    expect(shown("unseen")).toEqual([]);
  });

  test("TOOL-10 one that fails turns its message to an error", async () => {
    expect((await call("fetchLost", "lost")).output).toEqual({ error: "HTTP 410: gone" });
    await until(() => suite.spaces.statusesOf("lost").includes(Status.ERROR));
    expect(suite.spaces.statusesOf("lost")).toEqual([Status.RUNNING, Status.ERROR]);
    expect(shown("lost").at(-1)?.result?.isError).toBe(true);
  });

  test("TOOL-10 the message of a call whose router was killed during it ends with the call's unknown outcome", async () => {
    const { pid } = await suite.startRouterProcess("victim");
    const request = { sessionId: "s", name: "fetchNever", callId: "orphaned" };
    const lost = suite
      .clientsOf("victim")
      .call(request)
      .catch(() => "lost");
    await until(() => server.seen.some(({ url }) => url === "/never"), { timeoutMs: 20_000 });
    process.kill(pid, "SIGKILL");
    expect(await lost).toBe("lost");
    const { output } = await suite.clients.call({ ...request, recovering: true });
    expect(output).toEqual({ error: expect.stringMatching(/^outcome_unknown: /) });
    await until(() => suite.spaces.statusesOf("orphaned").includes(Status.ERROR));
    expect(shown("orphaned").at(-1)?.result?.outputJson).toBe(JSON.stringify(output));
  });

  test("TOOL-10 a call of an external tool requires action until its service has answered", async () => {
    await using _ = new ExternalService(suite.clients.calls, { tools: ["weigh"] });
    await call("weigh", "weighed");
    await until(() => suite.spaces.statusesOf("weighed").includes(Status.COMPLETE));
    expect(suite.spaces.statusesOf("weighed")).toEqual([Status.RUNNING, Status.REQUIRES_ACTION, Status.COMPLETE]);
  });

  test("TOOL-10 LOOP-14 a call that cannot be shown in the end reaches no watcher meanwhile", async () => {
    const failing = Promise.withResolvers<void>();
    suite.spaces.onToolMessage = ({ callId }) => (callId === "unshown" ? failing.promise : undefined);
    let askedForHolder = 0;
    const asked = listen(suite.bus, "toolbus.call.held", () => {
      askedForHolder += 1;
    });
    await using service = new ExternalService(suite.clients.calls, { tools: ["weigh"] }, takeOnly);
    const calling = call("weigh", "unshown");
    await until(() => service.callIds.includes("unshown") || askedForHolder > 4, { timeoutMs: 20_000 }); // each second
    failing.reject(new Failure("unavailable", "no space answers", { reason: "BUS_UNAVAILABLE" }));
    expect((await calling).output).toEqual({ error: expect.stringContaining("the call could not be shown") });
    expect(service.callIds).toEqual([]);
    asked.unsubscribe();
  });

  test("TOOL-10 a call that is not visible is in no space", async () => {
    await call("echo", "quiet");
    await call("chart", "loud"); // what comes after it is shown
    await until(() => suite.spaces.statusesOf("loud").includes(Status.COMPLETE));
    expect(shown("quiet")).toEqual([]);
  });
});
