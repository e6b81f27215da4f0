// Log messages of tools up to 2025-11-25, whose clients set a level once: by SDK 1.x, at two gateways.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { LoggingMessageNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openOldClient, type Where } from "../../fixtures/clients.ts";
import { type Door, keys, openDoor } from "../../fixtures/door.ts";

let door: Door;
let here: Where;
let there: Where;
beforeAll(async () => {
  door = await openDoor();
  here = { url: door.suite.url, key: keys.alice };
  there = { url: door.other.url, key: keys.alice };
}, 120_000);
afterAll(() => door[Symbol.asyncDispose]());

/** The same session, at another gateway. */
async function openAgain(where: Where, sessionId: string) {
  const requestInit = { headers: { authorization: `Bearer ${where.key}` } };
  const transport = new StreamableHTTPClientTransport(new URL(`${where.url}/mcp/clerk`), { requestInit, sessionId });
  const client = new Client({ name: "old", version: "1" });
  await client.connect(transport as Parameters<typeof client.connect>[0]);
  transport.setProtocolVersion("2025-11-25");
  return { client, [Symbol.asyncDispose]: () => client.close() };
}

/** What is told during a call. */
async function toldDuring({ client }: { client: Client }, name: string): Promise<string[]> {
  const told: string[] = [];
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
    told.push(params.level);
  });
  const progress = Promise.withResolvers<void>();
  const onprogress = ({ progress: step }: { progress: number }) => void (step > 3 && progress.resolve());
  const called = client.callTool({ name: "work__work", arguments: { name, logs: true } }, undefined, { onprogress });
  await progress.promise;
  door.work.end(name);
  await called;
  return [...new Set(told)].sort();
}

describe("DOOR-1 the level of log messages", () => {
  it("that a session's client has set holds at every gateway, until it sets another", async () => {
    await using one = await openOldClient(here);
    expect(one.client.getServerCapabilities()?.logging).toEqual({});
    expect(await toldDuring(one, "before"), "without a level").toEqual([]);
    await one.client.setLoggingLevel("info");
    await using other = await openAgain(there, one.sessionId);
    expect(await toldDuring(other, "info")).toEqual(["info"]);
    await other.client.setLoggingLevel("debug");
    expect(await toldDuring(one, "debug")).toEqual(["debug", "info"]);
    await one.client.setLoggingLevel("critical");
    expect(await toldDuring(other, "critical"), "tools log nothing above error").toEqual([]);
  }, 60_000);

  it("is that of its own session alone, and nobody else sets it", async () => {
    await using mine = await openOldClient(here);
    await using further = await openOldClient(here);
    await mine.client.setLoggingLevel("debug");
    expect(await toldDuring(further, "further")).toEqual([]);
    await expect(
      openAgain({ ...there, key: keys.mallory }, mine.sessionId).then(({ client }) => client.setLoggingLevel("error")),
    ).rejects.toThrow(/there is no session/);
    expect(await toldDuring(mine, "mine")).toEqual(["debug", "info"]);
  }, 60_000);
});
