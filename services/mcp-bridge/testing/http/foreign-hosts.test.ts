// What a server over HTTP can do with the secrets in its headers.

import { describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { callThrough, openConnection } from "../connection.ts";
import { openForeignHost, openRedirectingServer } from "../servers/redirecting-server.ts";

const noSignal = new AbortController().signal;
const secret = "secret-of-the-server";

const through = (url: string) =>
  openConnection({ name: "remote", url, headers: { "x-api-key": `$${"{secret:KEY}"}` } }, { secrets: { KEY: secret } });

describe("SEC-7 a server that is sent a secret", () => {
  test("cannot send a message on to another host", async () => {
    await using foreign = await openForeignHost();
    await using server = await openRedirectingServer(() => foreign.url);
    await using connection = through(server.url);
    await connection.settled(noSignal);
    expect(connection.status().reason).toMatch(/redirects to http:\/\/127\.0\.0\.1:\d+, which is not followed/);
    expect(foreign.keys).toEqual([]);
  });

  test("cannot send the stream of events on to another host", async () => {
    await using foreign = await openForeignHost();
    let asked = 0;
    await using server = await openRedirectingServer((method) => {
      if (method !== "GET") return undefined;
      asked += 1;
      return foreign.url;
    });
    await using connection = through(server.url);
    await connection.settled(noSignal);
    expect(connection.offer().status.available).toBe(true);
    await until(() => asked > 1, { what: "the stream to be asked for again", timeoutMs: 10_000 });
    expect(foreign.keys).toEqual([]);
  });

  test("may send requests on within its own origin", async () => {
    await using server = await openRedirectingServer(() => "/mcp/again");
    await using connection = through(server.url);
    await connection.settled(noSignal);
    expect(connection.offer()).toMatchObject({ status: { available: true } });
  });

  test.each(["fail", "refuse"])("shows it to nobody in an error: %s", async (tool) => {
    await using server = await openRedirectingServer(() => undefined);
    await using connection = through(server.url);
    await connection.settled(noSignal);
    const { output } = await callThrough(connection, tool);
    expect(JSON.stringify(output)).toContain("no entry for [secret KEY]");
    expect(JSON.stringify(output)).not.toContain(secret);
  });
});
