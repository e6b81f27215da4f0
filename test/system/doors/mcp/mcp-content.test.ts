// What MCP clients get beside tools: resources, prompts, completion, and results that are too large for a model.

import { fromJsonSchema, McpServer } from "@modelcontextprotocol/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { openModernServer } from "../../../../services/mcp-bridge/testing/servers/modern-server.ts";
import { openNewClient, openOldClient, send } from "../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../fixtures/door.ts";

let door: Door;
let here: { url: string; key: string };

beforeAll(async () => {
  door = await openDoor();
  here = { url: door.suite.url, key: keys.alice };
}, 120_000);
afterAll(() => door[Symbol.asyncDispose]());

type Opened = Awaited<ReturnType<typeof openOldClient>> | Awaited<ReturnType<typeof openNewClient>>;
const eras: [string, () => Promise<Opened>][] = [
  ["2025-11-25", () => openOldClient(here)],
  ["2026-07-28", () => openNewClient(here)],
];

describe.each(eras)("DOOR-1 a client of %s", (_, open) => {
  it("lists and reads the resources of the agent's servers, under their own addresses", async () => {
    await using one = await open();
    const { resources } = await one.client.listResources();
    const uri = resources.find((resource) => resource.uri.endsWith("features.md"))?.uri ?? "";
    const { contents } = await one.client.readResource({ uri });
    expect(contents).toMatchObject([{ uri, text: expect.stringContaining("Everything Server") }]);
    const { resourceTemplates } = await one.client.listResourceTemplates();
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain(
      "demo://resource/dynamic/text/{resourceId}",
    );
    const blob = await one.client.readResource({ uri: "demo://resource/dynamic/blob/1" });
    expect(blob.contents).toMatchObject([{ blob: expect.any(String) }]);
    await expect(one.client.readResource({ uri: "file:///etc/passwd" })).rejects.toThrow(/not found/i);
  });

  it("lists prompts, has them filled in, and completes their arguments", async () => {
    await using one = await open();
    const { prompts } = await one.client.listPrompts();
    const prompt = prompts.find(({ name }) => name === "all__args-prompt");
    expect(prompt?.arguments?.map(({ name, required }) => [name, required])).toContainEqual(["city", true]);
    const { messages } = await one.client.getPrompt({ name: "all__args-prompt", arguments: { city: "Oslo" } });
    expect(messages).toMatchObject([{ role: "user", content: { text: expect.stringContaining("Oslo") } }]);
    const complete = (name: string, value: string) =>
      one.client.complete({ ref: { type: "ref/prompt", name: "all__completable-prompt" }, argument: { name, value } });
    expect((await complete("department", "Eng")).completion.values).toEqual(["Engineering"]);
    const ref = { type: "ref/resource", uri: "demo://resource/dynamic/text/{resourceId}" } as const;
    const { completion } = await one.client.complete({ ref, argument: { name: "resourceId", value: "7" } });
    expect(completion.values).toEqual(["7"]);
    await expect(one.client.getPrompt({ name: "none" })).rejects.toThrow(/there is no prompt "none"/);
    const unfilled = one.client.getPrompt({ name: "all__args-prompt" });
    await expect(unfilled, "the server's own refusal of the arguments").rejects.toMatchObject({ code: -32_602 });
  });

  it.each([100_000, 400_000])(
    "gets the beginning of a text of %i characters, and reads the whole by its link",
    async (size) => {
      await using one = await open();
      const { content } = await one.client.callTool({ name: "work__work", arguments: { name: "ab", size } });
      const [text, link] = content as { type: string; text?: string; uri?: string }[];
      expect(link).toMatchObject({ type: "resource_link", uri: expect.stringMatching(/^toolbus:/) });
      expect(text?.text).toContain(link!.uri);
      expect(text!.text!.length).toBeLessThan(67_000);
      const { contents } = await one.client.readResource({ uri: link!.uri! });
      const [whole] = contents as { text: string }[];
      expect((JSON.parse(whole!.text) as string).length).toBeGreaterThan(size - 4);
      await using stranger = await openOldClient({ ...here, key: keys.mallory });
      await expect(stranger.client.readResource({ uri: link!.uri! })).rejects.toThrow();
    },
  );
});

it("DOOR-1 no server is asked for an address that it does not list", async () => {
  await using narrow = await openOldClient({ ...here, path: "/mcp/narrow" });
  expect((await narrow.client.listResources()).resources).toEqual([]);
  await expect(narrow.client.readResource({ uri: "demo://resource/dynamic/text/1" })).rejects.toThrow(/not found/i);
});

/** A server of 2026-07-28 that says for how long its lists, and what it reads, may be kept. */
function keepingServer(name: string, ttlMs: number | undefined) {
  const hint = ttlMs === undefined ? {} : { ttlMs, cacheScope: "public" as const };
  const cacheHints = Object.fromEntries(
    ["tools/list", "resources/list", "resources/templates/list", "prompts/list", "resources/read"].map((method) => [
      method,
      hint,
    ]),
  );
  return openModernServer(() => {
    const server = new McpServer({ name, version: "1" }, { cacheHints });
    server.registerResource(name, `kept://${name}`, {}, async (uri) => ({ contents: [{ uri: uri.href, text: name }] }));
    server.registerTool(name, { inputSchema: fromJsonSchema({ type: "object" }) }, async () => ({ content: [] }));
    server.registerPrompt(name, {}, () => ({ messages: [] }));
    return server;
  });
}

/** What a request by hand says of its answer. */
async function keptBy(agent: string, method: string, params = {}) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "hand", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const message = { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } };
  const headers = {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...("uri" in params && { "mcp-name": String(params.uri) }),
  };
  const { result } = (await (await send({ ...here, path: `/mcp/${agent}` }, message, headers)).json()) as {
    result: { ttlMs: number; cacheScope: string };
  };
  return [result.ttlMs, result.cacheScope];
}

describe("DOOR-1 what is kept by a client of 2026-07-28", () => {
  const stack = new AsyncDisposableStack();
  afterAll(() => stack.disposeAsync());

  beforeAll(async () => {
    const [short, long, never] = await Promise.all(
      Object.entries({ short: 1_500, long: 60_000, never: 0 }).map(async ([name, ttlMs]) => {
        const { url } = stack.use(await keepingServer(name, ttlMs));
        return { name, provider: "mcp", config: { url } };
      }),
    );
    const agents = { joined: [short!, long!], slack: [long!], strict: [long!, never!] };
    for (const [name, sources] of Object.entries(agents)) {
      const tools = { use: ["*"], allowed: { names: ["*"] } };
      const model = { provider: "scripted", model: "none.json" };
      await door.operator.client(AgentService).applyAgent({ agent: { name, model, tools, sources } });
    }
  });

  it.each(["tools/list", "resources/list", "resources/templates/list", "prompts/list"])(
    "%s is kept as long as the strictest server says, never longer than our own lists, and by one principal alone",
    async (method) => {
      expect(await keptBy("joined", method)).toEqual([1_500, "private"]);
      expect(await keptBy("slack", method)).toEqual([5_000, "private"]);
      expect(await keptBy("strict", method)).toEqual([0, "private"]);
    },
  );

  it("what is read is kept as its own server says, and not at all where it says nothing", async () => {
    expect(await keptBy("joined", "resources/read", { uri: "kept://short" })).toEqual([1_500, "private"]);
    expect(await keptBy("joined", "resources/read", { uri: "kept://long" })).toEqual([60_000, "private"]);
    const uri = "demo://resource/dynamic/text/1";
    expect(await keptBy("clerk", "resources/read", { uri })).toEqual([0, "private"]);
  });

  it("a client of before is told nothing of it", async () => {
    await using old = await openOldClient({ ...here, path: "/mcp/joined" });
    expect(await old.client.listResources()).not.toHaveProperty("ttlMs");
  });
});
