// The tools of an agent for MCP clients of either era, by real clients and by hand.

import { create } from "@bufbuild/protobuf";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { AllowedToolsSchema } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../../cli/connection.ts";
import { openTestSuite } from "../../../harness/suite.ts";
import { ask, begin, eventsOf, initializing, openNewClient, openOldClient, send } from "../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../fixtures/door.ts";

let door: Door;
let here: { url: string; key: string };

beforeAll(async () => {
  door = await openDoor();
  here = { url: door.suite.url, key: keys.alice };
}, 120_000);
afterAll(() => door[Symbol.asyncDispose]());

const { ACTIVE } = SessionState;
const there = () => ({ url: door.other.url, key: keys.alice });
const calling = (id: number, name: string) => ({
  ...{ jsonrpc: "2.0", id, method: "tools/call" },
  params: { name: "work__work", arguments: { name }, _meta: { progressToken: id } },
});

describe("DOOR-1 a client of SDK 1.x, which speaks 2025-11-25", () => {
  it("is listed what the agent may call, with instructions, and gets results in MCP's forms", async () => {
    await using old = await openOldClient(here);
    expect(old.client.getInstructions()).toContain("Work as long as you are told.");
    const { tools } = await old.client.listTools();
    const names = tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["all__echo", "work__work", "enter_space"]));
    expect(names).toEqual([...names].sort());
    const call = (name: string, given: object) => old.client.callTool({ name, arguments: { ...given } });
    expect(await call("all__echo", { message: "hi" })).toEqual({ content: [{ type: "text", text: "Echo: hi" }] });
    const { content: seen } = await call("all__get-tiny-image", {});
    expect(seen).toContainEqual(expect.objectContaining({ type: "image", mimeType: "image/png" }));
    const weather = await call("all__get-structured-content", { location: "New York" });
    expect(weather.structuredContent).toMatchObject({ temperature: expect.any(Number) });
    expect(await call("all__echo", { message: 7 })).toMatchObject({ isError: true });
    expect(await call("no_such_tool", {})).toMatchObject({ isError: true });
    await using narrow = await openOldClient({ ...here, path: "/mcp/narrow" });
    const allowed = (await narrow.client.listTools()).tools.map(({ name }) => name);
    expect(allowed.filter((name) => name.startsWith("all__"))).toEqual(["all__echo"]);
  });

  it("sees progress, and cancels what it called", async () => {
    await using old = await openOldClient(here);
    const progress: number[] = [];
    const cancel = new AbortController();
    const called = old.client.callTool({ name: "work__work", arguments: { name: "c1" } }, undefined, {
      signal: cancel.signal,
      onprogress: ({ progress: n }) => void progress.push(n),
    });
    await until(() => progress.length > 2, { what: "progress" });
    cancel.abort("enough");
    await expect(called).rejects.toThrow(/enough/);
    await door.work.saw("canceled c1");
    expect(progress).toEqual([...progress].sort((one, other) => one - other));
  });

  it("is told when the tools of its agent change", async () => {
    await using old = await openOldClient({ ...here, path: "/mcp/narrow" });
    let isTold = false;
    old.client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      isTold = true;
    });
    const before = (await old.client.listTools()).tools.length;
    let count = 1;
    // the client opens its stream beside what it asks, and is told of what comes after
    const isToldOfAnother = async () => {
      count = 3 - count;
      await allow("narrow", ["@all/echo", "@all/get-sum"].slice(0, count));
      await until(() => isTold, { timeoutMs: 4_000 }).catch(() => {});
      return isTold;
    };
    await until(isToldOfAnother, { timeoutMs: 20_000, what: "the notification" });
    expect((await old.client.listTools()).tools.length).toBe(before + count - 1);
    await allow("narrow", ["@all/echo"]);
  }, 30_000);
});

/** Lets an agent call these tools and no other. */
async function allow(name: string, names: string[]): Promise<void> {
  const agents = door.operator.client(AgentService);
  const agent = (await agents.getAgent({ name })).agent!.agent!;
  const allowed = create(AllowedToolsSchema, { names });
  await agents.applyAgent({ agent: { ...agent, tools: { ...agent.tools!, allowed } } });
}

describe("DOOR-1 a client of SDK 2.x, which speaks 2026-07-28", () => {
  it("needs no session, and each of its requests is served by any gateway", async () => {
    await using one = await openNewClient(here);
    await using other = await openNewClient(there());
    for (const { client } of [one, other]) {
      expect(client.getNegotiatedProtocolVersion()).toBe("2026-07-28");
      expect((await client.listTools()).tools.map(({ name }) => name)).toContain("all__echo");
      const answer = await client.callTool({ name: "all__echo", arguments: { message: "hi" } });
      expect(answer).toMatchObject({ content: [{ type: "text", text: "Echo: hi" }] });
    }
    const sessions = openConnection({ url: here.url, apiKey: here.key }).client(SessionService);
    const own = (await sessions.listSessions({ pageSize: 1_000 })).sessions.filter(({ id }) => id.startsWith("mcp-"));
    expect(own.map(({ agent, principal }) => [agent, principal])).toEqual([["clerk", "alice"]]);
    const callAtBoth = async () => {
      for (const { client } of [one, other])
        expect(await client.callTool({ name: "all__get-tiny-image", arguments: {} })).not.toMatchObject({
          isError: true,
        });
      const { sessions: opened } = await sessions.listSessions({ pageSize: 1_000 });
      return opened.filter(({ id, agent, state }) => isStanding(id) && agent === "clerk" && state === ACTIVE);
    };
    const isStanding = (id: string) => id.startsWith("mcp-");
    await sessions.closeSession({ sessionId: own[0]!.id });
    const [second] = await callAtBoth();
    await sessions.switchAgent({ sessionId: second!.id, agent: "narrow" }); // which has no such tool
    const standing = await callAtBoth();
    expect(standing.map(({ id }) => id)).not.toContain(second!.id);
    expect(standing).toHaveLength(1);
  });

  it("sees progress, and cancels by leaving", async () => {
    await using one = await openNewClient(there());
    const progress: number[] = [];
    const cancel = new AbortController();
    const called = one.client.callTool(
      { name: "work__work", arguments: { name: "c2" } },
      { signal: cancel.signal, onprogress: ({ progress: n }) => void progress.push(n) },
    );
    await until(() => progress.length > 2, { what: "progress" });
    cancel.abort("enough");
    await expect(called).rejects.toThrow();
    await door.work.saw("canceled c2");
  });

  it("is told when the tools of its agent change, where it listens", async () => {
    await using one = await openNewClient({ ...there(), path: "/mcp/narrow" });
    let isTold = false;
    one.client.setNotificationHandler("notifications/tools/list_changed", () => {
      isTold = true;
    });
    await one.client.listTools();
    const listening = await one.client.listen({ toolsListChanged: true });
    await allow("narrow", ["@all/echo", "@all/get-sum"]);
    await until(() => isTold, { timeoutMs: 15_000, what: "the notification" });
    await listening.close();
    await allow("narrow", ["@all/echo"]);
  }, 30_000);

  it("is refused where headers and body differ", async () => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "hand", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const message = { jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta } };
    const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" };
    const listed = await (await send(here, message, headers)).json();
    expect(listed).toMatchObject({ result: { ttlMs: expect.any(Number), cacheScope: "private" } });
    const refused = await send(here, message, { ...headers, "mcp-method": "tools/call" });
    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({ id: 1, error: { code: -32_020 } });
  });
});

describe("DOOR-1 a session of a client, as a session of the suite,", () => {
  it("is served by any gateway: its calls, cancellations, streams and end", async () => {
    const headers = { "mcp-session-id": await begin(here), "mcp-protocol-version": "2025-11-25" };
    const call = await send(here, calling(1, "a1"), headers);
    await door.work.saw("began a1");
    const canceled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } };
    expect((await send(there(), canceled, headers)).status).toBe(202);
    await door.work.saw("canceled a1");
    await call.body?.cancel();
    const left = await send(here, calling(3, "a3"), headers);
    await door.work.saw("began a3");
    const ending = performance.now();
    expect((await ask(there(), "DELETE", headers)).ok).toBe(true);
    expect(performance.now() - ending, "TOOLBUS_SWITCH_DRAIN is not waited for").toBeLessThan(30_000);
    await door.work.saw("canceled a3");
    await left.body?.cancel();
    const late = await send(here, { jsonrpc: "2.0", id: 2, method: "tools/list" }, headers);
    expect(late.status).toBe(404);
    expect(await late.json()).toMatchObject({ id: 2, error: { code: -32_001, data: { reason: "SESSION_NOT_FOUND" } } });
  });

  it("goes on with a call whose stream it lost, at another gateway, and nothing is executed twice", async () => {
    const headers = { "mcp-session-id": await begin(here), "mcp-protocol-version": "2025-11-25" };
    const lost = await send(here, calling(1, "b1"), headers);
    const events = eventsOf(lost);
    const { value: first } = await events.next();
    await door.work.saw("began b1");
    await events.return(undefined);
    const again = await ask(there(), "GET", { ...headers, "last-event-id": first!.id });
    expect(again.headers.get("content-type")).toBe("text/event-stream");
    const going = eventsOf(again);
    expect(JSON.parse((await going.next()).value!.data || (await going.next()).value!.data)).toMatchObject({
      method: "notifications/progress",
    });
    door.work.end("b1");
    const rest = (await Array.fromAsync(going)).map(({ data }) => JSON.parse(data || "{}"));
    expect(rest.at(-1)).toMatchObject({ id: 1, result: { content: [{ type: "text", text: "b1 is done" }] } });
    const known = await Array.fromAsync(eventsOf(await ask(here, "GET", { ...headers, "last-event-id": first!.id })));
    expect(JSON.parse(known.at(-1)!.data)).toMatchObject({ id: 1, result: { content: [{ text: "b1 is done" }] } });
    expect(door.work.log.filter((line) => line === "began b1")).toHaveLength(1);
  });

  it("goes on with a call whose arguments are too large for its record", async () => {
    const headers = { "mcp-session-id": await begin(here), "mcp-protocol-version": "2025-11-25" };
    const given = { name: "l1", padding: "x".repeat(400_000) };
    const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "work__work", arguments: given } };
    const events = eventsOf(await send(here, call, headers));
    const { value: first } = await events.next();
    await door.work.saw("began l1");
    await events.return(undefined);
    const again = await ask(there(), "GET", { ...headers, "last-event-id": first!.id });
    door.work.end("l1");
    const rest = (await Array.fromAsync(eventsOf(again))).map(({ data }) => JSON.parse(data || "{}"));
    expect(rest.at(-1)).toMatchObject({ id: 1, result: { content: [{ type: "text", text: "l1 is done" }] } });
    expect(door.work.log.filter((line) => line === "began l1")).toHaveLength(1);
  });

  it("tells a client that lost the stream of a call which nobody has kept, by an answer to its request", async () => {
    const headers = { "mcp-session-id": await begin(here), "mcp-protocol-version": "2025-11-25" };
    const params = { name: "note", arguments: { padding: "x".repeat(3_000) } };
    const events = await Array.fromAsync(
      eventsOf(await send(here, { jsonrpc: "2.0", id: 1, method: "tools/call", params }, headers)),
    );
    const ids = events.map(({ id }) => id);
    expect(new Set(ids).size, "each has an id of its own").toBe(2);
    const again = await ask(there(), "GET", { ...headers, "last-event-id": ids[0]! });
    const [told] = await Array.fromAsync(eventsOf(again));
    expect(JSON.parse(told!.data)).toMatchObject({
      id: 1,
      error: { message: expect.stringContaining("send it again") },
    });
  });

  it("outlives the gateway that serves a call of it", async () => {
    await using third = await openTestSuite(door.gatewayOptions);
    const headers = {
      "mcp-session-id": await begin({ ...here, url: third.url }),
      "mcp-protocol-version": "2025-11-25",
    };
    const events = eventsOf(await send({ ...here, url: third.url }, calling("k" as unknown as number, "k1"), headers));
    const { value: first } = await events.next();
    await door.work.saw("began k1");
    process.kill(third.services[0]!.pid!, "SIGKILL");
    await expect(Array.fromAsync(events)).rejects.toThrow();
    door.work.end("k1");
    const resumed = await Array.fromAsync(eventsOf(await ask(here, "GET", { ...headers, "last-event-id": first!.id })));
    expect(JSON.parse(resumed.at(-1)!.data)).toMatchObject({ id: "k", result: { content: [{ text: "k1 is done" }] } });
    expect(door.work.log.filter((line) => line === "began k1")).toHaveLength(1);
  }, 60_000);

  it("keeps numbers that a double does not hold", async () => {
    const headers = { "mcp-session-id": await begin(here) };
    const number = "12345678901234567890";
    const params = `{"name":"note","arguments":{"n":${number}}}`;
    const answer = await send(here, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":${params}}`, headers);
    expect(await answer.text()).toContain(`\\"n\\":${number}`);
  });
});

describe("SEC-1 the door of MCP clients", () => {
  it("lets nobody in without a key", async () => {
    for (const headers of [{}, { authorization: "Bearer wrong-key-altogether" }]) {
      const refused = await send({ ...here, key: "" }, initializing, headers);
      expect(refused.status).toBe(401);
      expect(refused.headers.get("www-authenticate")).toMatch(/^Bearer/);
      expect(await refused.json()).toMatchObject({ error: { data: { reason: "CREDENTIALS_INVALID" } } });
    }
  });

  it("finds no session of somebody else, nor one that never was, whatever is asked", async () => {
    const own = await begin(here);
    const listing = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    for (const [key, sessionId] of [
      [keys.mallory, own],
      [keys.alice, "5d0fbfe5-7bd3-4e5a-9a3e-d6a4d4cbbb3a"],
      [keys.alice, "no session, this"],
    ] as const) {
      const who = { ...here, key };
      const headers = { "mcp-session-id": sessionId };
      const answers = [await send(who, listing, headers), await send(who, calling(9, "m1"), headers)];
      answers.push(await ask(who, "GET", headers), await ask(who, "DELETE", headers));
      expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404]);
    }
    expect(door.work.log).not.toContain("began m1");
    expect((await send(here, listing, { "mcp-session-id": own })).status).toBe(200);
    expect((await send(here, listing)).status).toBe(400);
  });

  it("says which agents there are to who names none, or one that there is not", async () => {
    const unknown = await send({ ...here, path: "/mcp/clark" }, initializing);
    expect([unknown.status, await unknown.text()]).toEqual([
      404,
      expect.stringContaining('there is no agent \\"clark\\"'),
    ]);
    const none = await send({ ...here, path: "/mcp" }, initializing);
    expect([none.status, await none.text()]).toEqual([404, expect.stringMatching(/one of .*clerk.*narrow/)]);
  });

  it("takes no page of another origin, and nothing that is no JSON", async () => {
    expect((await send(here, initializing, { origin: "https://evil.example" })).status).toBe(403);
    expect((await send(here, initializing, { origin: new URL(here.url).origin })).status).toBe(200);
    expect((await send(here, initializing, { "content-type": "text/plain" })).status).toBe(415);
    const broken = await send(here, "{");
    expect([broken.status, await broken.json()]).toEqual([
      400,
      expect.objectContaining({ error: expect.objectContaining({ code: -32_700 }) }),
    ]);
  });

  it("SEC-6 gives each principal its share of calls and streams, and bounds bodies", async () => {
    const env = {
      ...door.gatewayOptions.env,
      TOOLBUS_SHARE_CALLS: "1",
      TOOLBUS_SHARE_STREAMS: "3",
      TOOLBUS_MAX_REQUEST_BYTES: "2048",
    };
    await using small = await openTestSuite({ ...door.gatewayOptions, env });
    const narrow = { ...here, url: small.url };
    const headers = { "mcp-session-id": await begin(narrow), "mcp-protocol-version": "2025-11-25" };
    const first = eventsOf(await send(narrow, calling(1, "s1"), headers));
    await door.work.saw("began s1");
    const second = await Array.fromAsync(eventsOf(await send(narrow, calling(2, "s2"), headers)));
    expect(JSON.parse(second.at(-1)!.data)).toMatchObject({ id: 2, error: { data: { reason: "SHARE_EXCEEDED" } } });
    const streams = [await ask(narrow, "GET", headers), await ask(narrow, "GET", headers)];
    const beyond = await ask(narrow, "GET", headers);
    expect([beyond.status, beyond.headers.get("retry-after")]).toEqual([429, "1"]);
    expect((await begin({ ...narrow, key: keys.mallory })).length).toBeGreaterThan(10);
    for (const stream of streams) await stream.body?.cancel();
    door.work.end("s1");
    await Array.fromAsync(first);
    const large = { ...initializing, params: { ...initializing.params, large: "x".repeat(4_096) } };
    expect((await send(narrow, large)).status).toBe(413);
    expect(door.work.log).not.toContain("began s2");
  }, 60_000);
});
