// What calls ask of people, put to the MCP client that calls: by real clients and servers of both eras, and by hand.

import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolCatalogService } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { openConnection } from "../../../../../cli/connection.ts";
import { openTestSuite, type TestSuite } from "../../../../harness/suite.ts";
import { openAskingServer } from "../../../fixtures/asking/modern-server.ts";
import { ask, eventsOf, initializing, send, type Where } from "../../fixtures/clients.ts";

const keys = { alice: "the-key-of-alice-herself", mallory: "the-key-of-mallory-herself" };
const oldServer = new URL("../../../fixtures/asking/old-server.ts", import.meta.url).pathname;
const path = "/mcp/asker";
const env = {
  TOOLBUS_API_KEYS: `olga:the-key-of-olga-herself,alice:${keys.alice},mallory:${keys.mallory}`,
  TOOLBUS_OPERATORS: "olga",
  TOOLBUS_DEFAULT_GRANT: "alice,mallory",
};

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let modern: Awaited<ReturnType<typeof openAskingServer>>;
let here: Where;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ env }));
  modern = stack.use(await openAskingServer());
  here = { url: suite.url, key: keys.alice, path };
  const operator = openConnection({ url: suite.url, apiKey: "the-key-of-olga-herself" });
  const outputSchemaJson = JSON.stringify({
    type: "object",
    properties: { approved: { type: "boolean" } },
    required: ["approved"],
  });
  const approve = { name: "approve", executionType: ExecutionType.SPACE, outputSchemaJson };
  await operator.client(ToolCatalogService).applyCatalogTool({ tool: approve });
  const names = ["@old/*", "@new/*", "approve"];
  const sources = [
    { name: "old", provider: "mcp", config: { command: process.execPath, args: [oldServer] } },
    { name: "new", provider: "mcp", config: { url: modern.url } },
  ];
  const model = { provider: "scripted", model: "none.json" };
  const agent = { name: "asker", model, tools: { use: names, allowed: { names } }, sources };
  await operator.client(AgentService).applyAgent({ agent });
}, 120_000);
afterAll(() => stack.disposeAsync());

/** A gateway of its own, which may be killed. */
async function openGateway() {
  const { nats, credentials } = suite;
  const gateway = { natsUrl: nats.url, services: ["gateway"], isolate: true, restart: false };
  const opened = await openTestSuite({ ...gateway, env: { ...env, TOOLBUS_BUS_CREDENTIALS: credentials } });
  const kill = () => process.kill(opened.services[0]!.pid!, "SIGKILL");
  return { where: { ...here, url: opened.url }, kill, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() };
}

interface Asked {
  readonly message: string;
  readonly mode?: string | undefined;
}

type Answered = { action: "accept" | "decline" | "cancel"; content?: Record<string, string | number | boolean> };
type Person = (asked: Asked) => Answered;

const capabilities = { elicitation: { form: {}, url: {} } };
const urlOf = (where: Where) => new URL(where.url + path);
const initOf = (where: Where) => ({ requestInit: { headers: { authorization: `Bearer ${where.key}` } } });

/** Clients whose person answers so. */
const clients = {
  "SDK 1.x": async (where: Where, person: Person) => {
    const client = new Client({ name: "old", version: "1" }, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => person(params));
    const transport = new StreamableHTTPClientTransport(urlOf(where), initOf(where));
    await client.connect(transport as Parameters<typeof client.connect>[0]);
    const call = async (name: string) => client.callTool({ name, arguments: {} }).then(textOf);
    return { call, sessionId: transport.sessionId, [Symbol.asyncDispose]: () => client.close() };
  },
  "SDK 2.x": async (where: Where, person: Person) => {
    const client = new ModernClient(
      { name: "new", version: "1" },
      { capabilities, versionNegotiation: { mode: "auto" } },
    );
    client.setRequestHandler("elicitation/create", ({ params }) => person(params));
    await client.connect(new ModernTransport(urlOf(where), initOf(where)));
    const call = async (name: string) => client.callTool({ name, arguments: {} }).then(textOf);
    return { call, sessionId: undefined, [Symbol.asyncDispose]: () => client.close() };
  },
};
type Line = keyof typeof clients;

function textOf(result: unknown): string {
  const { content } = result as { content: { type: string; text?: string }[] };
  return content.map(({ text }) => text ?? "").join("\n");
}

describe.each(Object.keys(clients) as Line[])("DOOR-2 a client of %s that can ask its person", (line) => {
  it("is asked what servers of both eras ask, forms and addresses", async () => {
    const seen: Asked[] = [];
    await using one = await clients[line](here, (asked) => {
      seen.push(asked);
      return asked.mode === "url" ? { action: "accept" } : { action: "accept", content: { city: "Rome", seats: 3 } };
    });
    expect(JSON.parse(await one.call("old__book"))).toEqual({ action: "accept", content: { city: "Rome", seats: 3 } });
    expect(JSON.parse(await one.call("new__book"))).toMatchObject({
      where: { action: "accept", content: { city: "Rome", seats: 3 } },
      signed: { action: "accept" },
    });
    expect(seen.map(({ message }) => message)).toEqual(["Where to?", "Where to?", "Sign here"]);
    expect(seen[2]).toMatchObject({ mode: "url", url: "https://example.org/sign" });
  }, 60_000);

  it("has what its person declines told to the server", async () => {
    await using one = await clients[line](here, () => ({ action: "decline" }));
    expect(JSON.parse(await one.call("old__book"))).toEqual({ action: "decline" });
  }, 60_000);

  it("is asked for an approval that waits in the space, too", async () => {
    await using one = await clients[line](here, ({ message }) => {
      expect(message).toContain("approve");
      return { action: "accept", content: { approved: true } };
    });
    const owner = openConnection({ url: suite.url, apiKey: keys.alice });
    await one.call("old__roots"); // its session is there now
    const { sessions } = await owner.client(SessionService).listSessions({ pageSize: 100 });
    const sessionId = one.sessionId?.split(".")[0] ?? sessions.find(({ id }) => id.startsWith("mcp-"))!.id;
    const spaceId = `hall-${line === "SDK 1.x" ? 1 : 2}`;
    await owner.client(SpaceService).createSpace({ spaceId });
    const member = { case: "agent", value: { sessionId, agent: "asker" } } as const;
    await owner.client(SpaceService).enterSpace({ spaceId, member });
    expect(JSON.parse(await one.call("approve"))).toEqual({ approved: true });
    await owner.client(SpaceService).leaveSpace({ spaceId, member });
  }, 60_000);
});

const calling = (id: number, name: string) => ({
  ...{ jsonrpc: "2.0", id, method: "tools/call" },
  params: { name, arguments: {}, _meta: { progressToken: id } },
});

describe("DOOR-2 a question outlives the gateway that put it", () => {
  it("2025-11-25: it is answered at another one, which refuses what does not fit, and where the client comes back for its call", async () => {
    await using doomed = await openGateway();
    const params = { ...initializing.params, capabilities };
    const begun = await send(doomed.where, { ...initializing, params });
    await begun.body?.cancel();
    const headers = {
      "mcp-session-id": begun.headers.get("mcp-session-id") ?? "",
      "mcp-protocol-version": "2025-11-25",
    };
    const call = await send(doomed.where, calling(1, "old__book"), headers);
    let lastEventId = "";
    let asked: { id: string; method: string } | undefined;
    for await (const { id, data } of eventsOf(call)) {
      if (id !== "") lastEventId = id;
      if (data !== "") asked = JSON.parse(data);
      if (asked) break;
    }
    expect(asked?.method).toBe("elicitation/create");
    doomed.kill();
    const result = { action: "accept", content: { city: "Oslo", seats: 1 } };
    const foreign = await send({ ...here, key: keys.mallory }, { jsonrpc: "2.0", id: asked!.id, result }, headers);
    expect(foreign.status, "another principal's session").toBe(404);
    const unfit = { action: "accept", content: { city: 7 } };
    const refused = await send(here, { jsonrpc: "2.0", id: asked!.id, result: unfit }, headers);
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringMatching(/is refused: .*city/)]);
    expect((await send(here, { jsonrpc: "2.0", id: asked!.id, result }, headers)).status).toBe(202);
    const resumed = await ask(here, "GET", { ...headers, "last-event-id": lastEventId });
    const answers: string[] = [];
    for await (const { data } of eventsOf(resumed)) if (data !== "") answers.push(data);
    expect(JSON.parse(textOf(JSON.parse(answers.at(-1)!).result))).toEqual(result);
  }, 90_000);

  it("2026-07-28: the call goes on by what the client brings to another one, which nobody can alter", async () => {
    await using doomed = await openGateway();
    const before = modern.booked.length;
    const first = await post(doomed.where, {});
    expect(first.result).toMatchObject({ resultType: "input_required" });
    const { requestState, inputRequests } = first.result;
    const [name = ""] = Object.keys(inputRequests);
    doomed.kill();
    const inputResponses = { [name]: { action: "accept", content: { city: "Oslo", seats: 1 } } };
    const altered = `${requestState.slice(0, -2)}${requestState.endsWith("AA") ? "BB" : "AA"}`;
    expect((await post(here, { requestState: altered, inputResponses })).error?.code).toBe(-32_602);
    const foreign = { ...here, key: keys.mallory };
    expect((await post(foreign, { requestState, inputResponses })).error?.code).toBe(-32_602);
    const second = await post(here, { requestState, inputResponses });
    expect(second.result).toMatchObject({ resultType: "input_required" });
    const [sign = ""] = Object.keys(second.result.inputRequests);
    const signed = { requestState: second.result.requestState, inputResponses: { [sign]: { action: "accept" } } };
    const last = await post(here, signed);
    expect(JSON.parse(textOf(last.result))).toMatchObject({ where: { content: { city: "Oslo" } } });
    expect(modern.booked.length - before).toBe(1);
    const again = await post(here, signed);
    expect(JSON.parse(textOf(again.result)), "and the same again is the same result").toMatchObject({
      where: { content: { city: "Oslo" } },
    });
    expect(modern.booked.length - before).toBe(1);
    const owner = openConnection({ url: suite.url, apiKey: keys.alice });
    const { calls } = await owner.client(ToolCallService).listToolCalls({ states: [], pageSize: 100 });
    expect(calls.filter(({ question }) => question !== undefined).length).toBeGreaterThan(0);
  }, 90_000);

  // biome-ignore lint/suspicious/noExplicitAny: what came over the wire
  async function post(where: Where, given: object): Promise<any> {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "hand", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": capabilities,
    };
    const params = { name: "new__book", arguments: {}, _meta, ...given };
    const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
    const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "new__book" };
    const response = await send(where, message, headers);
    const text = await response.text();
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return JSON.parse(text);
    const data = text.split("\n").filter((line) => line.startsWith("data: "));
    return JSON.parse(data.at(-1)!.slice("data: ".length));
  }
});
