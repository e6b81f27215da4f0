// A server that does not say what it has holds up nobody for long, and what it may have is not told as absent.

import { createClient, createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { afterEach, expect, it, vi } from "vitest";
import { McpContentService } from "#gen/toolbus/mcp/v1/mcp_content_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { openTestDoor, postMessage } from "../http/testing/door.ts";
import { watchedFrom } from "./resources/resources.ts";
import { createAgentSources } from "./sources.ts";

const URI = "files://one";
const tools = { listTools: () => ({ sources: ["silent", "files"].map((source) => ({ source, available: true })) }) };

afterEach(() => void vi.useRealTimers());

/** Each asks what `content` has of the server "files"; the other one hangs. */
function sourcesOf(
  content: Partial<ServiceImpl<typeof McpContentService>>,
  listing: Partial<ServiceImpl<typeof ToolService>> = tools,
) {
  const transport = createRouterTransport((router) =>
    router.service(ToolService, listing).service(McpContentService, content),
  );
  return createAgentSources({
    tools: createClient(ToolService, transport),
    content: createClient(McpContentService, transport),
    options: {},
    sessionId: async () => "s1",
    tellsTtl: true,
  });
}

const unlessSilent =
  <T>(answer: T) =>
  ({ source }: { source?: { source: string } | undefined }) =>
    source?.source === "files" ? answer : new Promise<T>(() => {});

it("DOOR-1 a server that hangs holds up the lists of the others for a moment", async () => {
  const sources = sourcesOf({ listResources: unlessSilent({ resources: [{ uri: URI, name: "one" }] }) });
  vi.useFakeTimers();
  const told = vi.fn();
  void sources.resources().then(told);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(told).toHaveBeenCalledOnce();
  const [found] = told.mock.calls[0]!;
  expect(found.map(({ items }: { items: { uri: string }[] }) => items.map(({ uri }) => uri))).toEqual([[], [URI]]);
  expect(sources.ttlOf(found), "a list with a gap is nothing to keep").toEqual({ ttlMs: 0 });
});

it.each([
  [1_000, "an address that another one lists", URI],
  [20_000, "an address that another one has a template for", "files://two"],
])("DOOR-1 a server that hangs holds up for %d ms at most %s", async (mostMs, _, uri) => {
  const sources = sourcesOf({
    listResources: unlessSilent({ resources: [{ uri: URI }] }),
    listResourceTemplates: unlessSilent({ resourceTemplates: [{ uriTemplate: "files://{name}" }] }),
  });
  vi.useFakeTimers();
  const told = vi.fn();
  void watchedFrom([uri], sources).then(told);
  await vi.advanceTimersByTimeAsync(mostMs);
  expect(told).toHaveBeenCalledExactlyOnceWith([{ source: "files", uri }]);
});

it("DOOR-1 a server that is down holds up for a second what only a template of another one fits", async () => {
  const isDown = { listTools: () => ({ sources: [{ source: "silent" }, { source: "files", available: true }] }) };
  const sources = sourcesOf(
    {
      listResources: unlessSilent({}),
      listResourceTemplates: unlessSilent({ resourceTemplates: [{ uriTemplate: "files://{name}" }] }),
    },
    isDown,
  );
  vi.useFakeTimers();
  const told = vi.fn();
  void watchedFrom([URI], sources).then(told);
  await vi.advanceTimersByTimeAsync(1_200);
  expect(told).toHaveBeenCalledExactlyOnceWith([{ source: "files", uri: URI }]);
});

it("DOOR-1 what a server that is down may have is told as unavailable after a second", async () => {
  await using door = await openTestDoor({
    tools: { listTools: () => ({ sources: [{ source: "silent" }] }) },
    content: { listResources: unlessSilent({}), listResourceTemplates: unlessSilent({}) },
  });
  const read = { jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri: URI } };
  const answer = await postMessage(door.url, read, { signal: AbortSignal.timeout(4_000) });
  expect(await answer.json()).toMatchObject({ error: { data: { reason: "MCP_SERVER_UNAVAILABLE" } } });
});

it("DOOR-1 no templates are asked for where a list has the address", async () => {
  const listResourceTemplates = vi.fn(unlessSilent({}));
  const sources = sourcesOf({ listResources: unlessSilent({ resources: [{ uri: URI }] }), listResourceTemplates });
  await expect(watchedFrom([URI], sources)).resolves.toEqual([{ source: "files", uri: URI }]);
  expect(listResourceTemplates).not.toHaveBeenCalled();
});

it("DOOR-1 what a server has that takes twelve seconds to say so is found", async () => {
  const resources = [{ uri: URI }];
  const sources = sourcesOf({
    listResources: () => new Promise((resolve) => setTimeout(resolve, 12_000, { resources })),
    listResourceTemplates: () => ({}),
  });
  vi.useFakeTimers();
  const told = vi.fn();
  void watchedFrom([URI], sources).then(told);
  await vi.advanceTimersByTimeAsync(12_000);
  expect(told).toHaveBeenCalledExactlyOnceWith([{ source: "silent", uri: URI }]);
});

it("DOOR-1 what a server may have whose connection is broken is told as unavailable", async () => {
  const away = () => refuse("unavailable", "the connection broke", { reason: "MCP_SERVER_UNAVAILABLE" });
  await using door = await openTestDoor({
    tools: { listTools: () => ({ sources: [{ source: "broken", available: false, reason: "the connection broke" }] }) },
    content: { listResources: away, listResourceTemplates: away, listPrompts: away },
  });
  const read = { jsonrpc: "2.0", id: 1, method: "resources/read", params: { uri: URI } };
  expect(await (await postMessage(door.url, read)).json()).toMatchObject({
    error: { message: expect.stringContaining("broken"), data: { reason: "MCP_SERVER_UNAVAILABLE" } },
  });
  const list = { jsonrpc: "2.0", id: 2, method: "resources/list" };
  expect(await (await postMessage(door.url, list)).json()).toMatchObject({ result: { resources: [] } });
});

it("DOOR-1 a server that hangs holds up a prompt of another one for a moment", async () => {
  await using door = await openTestDoor({
    tools,
    content: { listPrompts: unlessSilent({ prompts: [{ name: "one" }] }), getPrompt: () => ({ description: "found" }) },
  });
  const asked = { jsonrpc: "2.0", id: 1, method: "prompts/get", params: { name: "files__one" } };
  const answer = await postMessage(door.url, asked, { signal: AbortSignal.timeout(4_000) });
  expect(await answer.json()).toMatchObject({ result: { description: "found" } });
});

it.each([
  ["resources/read", { uri: "silent://one" }],
  ["resources/subscribe", { uri: "silent://one" }],
  ["prompts/get", { name: "silent__one" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "silent__one" }, argument: { name: "a", value: "b" } }],
  ["completion/complete", { ref: { type: "ref/resource", uri: "silent://{a}" }, argument: { name: "a", value: "b" } }],
])("DOOR-1 %s of what a server may have that is away is told as unavailable", async (method, params) => {
  const away = () => refuse("unavailable", "the connection broke", { reason: "MCP_SERVER_UNAVAILABLE" });
  const ofFiles =
    <T>(list: T) =>
    ({ source }: { source?: { source: string } | undefined }) =>
      source?.source === "files" ? list : away();
  await using door = await openTestDoor({
    tools,
    content: {
      listResources: ofFiles({ resources: [{ uri: URI, name: "one" }] }),
      listResourceTemplates: ofFiles({ resourceTemplates: [] }),
      listPrompts: ofFiles({ prompts: [] }),
    },
  });
  const answer = await postMessage(door.url, { jsonrpc: "2.0", id: 1, method, params });
  expect(await answer.json()).toMatchObject({
    error: { message: expect.stringContaining("silent"), data: { reason: "MCP_SERVER_UNAVAILABLE" } },
  });
});
