import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { HealthState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { LogLevel } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { until } from "#runtime/time/until.ts";
import type { Connection } from "../../connection/connection.ts";
import { callThrough, openConnection } from "../connection.ts";
import { openCuttingServer } from "../servers/cutting-server.ts";
import { openModernServer } from "../servers/modern-server.ts";
import { openSessionServer } from "../servers/session-server.ts";

const noSignal = new AbortController().signal;

function toolsOf(connection: Connection) {
  return connection.offer().tools.map(({ tool }) => tool?.name);
}

/** What a connection offers at each change from now on. */
function followOffers(connection: Connection) {
  const offered: ReturnType<Connection["offer"]>[] = [];
  void (async () => {
    while (!connection.isClosed) {
      await connection.changes.next().happened;
      if (!connection.isClosed) offered.push(connection.offer());
    }
  })();
  return offered;
}

describe("a server over streamable HTTP with sessions, of another SDK", () => {
  test("ORCH-6 lists and calls, with progress, logs and the headers of its configuration", async () => {
    await using server = await openSessionServer();
    await using connection = openConnection(
      { name: "old", url: server.url, headers: { "x-token": `$${"{secret:KEY}"}` } },
      { secrets: { KEY: "k1" } },
    );
    await connection.settled(noSignal);
    expect(toolsOf(connection)).toEqual(["echo", "wait", "report"]);
    const { progress, logs, output } = await callThrough(connection, "report", { text: "done" });
    expect(output).toBe("done");
    expect(progress).toMatchObject([{ progress: 1, total: 2 }]);
    expect(logs).toMatchObject([{ level: LogLevel.INFO, message: "reporting" }]);
    expect(server.sessions.headers["x-token"]).toBe("k1");
    expect(connection.status().protocolVersion).toBe("2025-11-25");
  });

  test.for([404, 400] as const)(
    "a session that is lost (%i) is healed within the call, which runs once",
    async (status) => {
      await using server = await openSessionServer();
      await using connection = openConnection({ name: "old", url: server.url });
      await callThrough(connection, "echo", { text: "before" });
      server.sessions.forget(status);
      const { output } = await callThrough(connection, "echo", { text: "after" });
      expect(output).toBe("after");
      expect(server.sessions.executed).toBe(2);
      expect(server.sessions.count).toBe(1);
    },
  );

  test("ORCH-6 its tools stay known while a lost session is made anew, and calls at once all wait for it", async () => {
    await using server = await openSessionServer();
    await using connection = openConnection({ name: "old", url: server.url });
    await connection.settled(noSignal);
    const offered = followOffers(connection);
    server.sessions.forget();
    const texts = Array.from({ length: 8 }, (_, index) => `text ${index}`);
    const told = await Promise.all(texts.map((text) => callThrough(connection, "echo", { text })));
    expect(told.map(({ output }) => output)).toEqual(texts);
    expect(new Set(offered.map(({ tools }) => tools.length))).toEqual(new Set([3]));
    expect(offered.some(({ status }) => status.starting)).toBe(true);
  });

  test("a stream that ends without an answer fails the call at once, its outcome unknown", async () => {
    await using server = await openCuttingServer();
    await using connection = openConnection({ name: "cutting", url: server.url });
    const cut = callThrough(connection, "cut");
    await expect(cut).rejects.toMatchObject({ code: "unavailable", reason: "OUTCOME_UNKNOWN" });
    expect(server.cut).toBe(1);
  });

  test.for([0, 2 ** 31])(
    "SEC-5 a stream that ends again and again is asked for again at our own pace, whatever the server wants (%i ms)",
    async (retryMs) => {
      await using server = await openCuttingServer({ event: `id: 1\nretry: ${retryMs}\ndata:\n\n` });
      await using connection = openConnection({ name: "cutting", url: server.url });
      await connection.settled(noSignal);
      const cut = callThrough(connection, "cut", {}, { deadlineMs: Date.now() + 1_000 });
      await expect(cut).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
      expect(server.resumed).toBeLessThan(5);
    },
  );

  test("a stream that ended after an event without data is asked for again, and gives the answer then", async () => {
    await using server = await openCuttingServer({ event: "id: 1\nretry: 0\ndata:\n\n", isAnsweredAgain: true });
    await using connection = openConnection({ name: "cutting", url: server.url });
    const { output } = await callThrough(connection, "cut", {}, { deadlineMs: Date.now() + 5_000 });
    expect(output).toBe("after all");
    expect(server.resumed).toBe(1);
  });

  test("a call over its deadline is canceled at the server", async () => {
    await using server = await openSessionServer();
    await using connection = openConnection({ name: "old", url: server.url });
    await connection.settled(noSignal);
    const late = callThrough(connection, "wait", {}, { deadlineMs: Date.now() + 200 });
    await expect(late).rejects.toMatchObject({ code: "deadline_exceeded", reason: "OUTCOME_UNKNOWN" });
    await until(() => server.sessions.canceled.length === 1);
  });

  test("ORCH-7 list_changed refreshes, also after the stream of events was closed", async () => {
    await using server = await openSessionServer();
    await using connection = openConnection({ name: "old", url: server.url });
    await connection.settled(noSignal);
    await until(() => server.sessions.eventRequests === 1);
    await server.sessions.addTool("later");
    await until(() => toolsOf(connection).includes("later"));
    server.sessions.endEventStreams();
    await server.sessions.addTool("in-the-gap");
    await until(() => toolsOf(connection).includes("in-the-gap"), { timeoutMs: 10_000 });
    expect(server.sessions.eventRequests).toBe(2);
  });

  test("closing ends the session at the server", async () => {
    await using server = await openSessionServer();
    const connection = openConnection({ name: "old", url: server.url });
    await connection.settled(noSignal);
    expect(server.sessions.count).toBe(1);
    await connection[Symbol.asyncDispose]();
    expect(server.sessions.count).toBe(0);
  });

  test("ORCH-8 a server that goes is red, and green again by itself when it is back", async () => {
    const server = await openSessionServer();
    const { port } = server;
    await using connection = openConnection({
      name: "old",
      url: server.url,
      healthCheck: { interval: durationFromMs(20), timeout: durationFromMs(500) },
    });
    await connection.settled(noSignal);
    await server[Symbol.asyncDispose]();
    await until(() => connection.status().health === HealthState.UNHEALTHY);
    expect(connection.offer().status.available).toBe(false);
    await using back = await openSessionServer({ port });
    await until(() => connection.status().health === HealthState.HEALTHY, { timeoutMs: 15_000 });
    expect((await callThrough(connection, "echo", { text: "back" })).output).toBe("back");
    expect(back.sessions.executed).toBe(1);
  });

  test("ORCH-6 an address where nobody listens is unavailable with its reason", async () => {
    const server = await openSessionServer();
    await server[Symbol.asyncDispose]();
    await using connection = openConnection({ name: "gone", url: server.url });
    await connection.settled(noSignal);
    expect(connection.offer().status).toMatchObject({
      available: false,
      reason: expect.stringMatching(/ECONNREFUSED/),
    });
  });
});

describe("a server that speaks 2026-07-28 only", () => {
  test("ORCH-6 is discovered, listed and called", async () => {
    await using server = await openModernServer();
    await using connection = openConnection({ name: "modern", url: server.url });
    await connection.settled(noSignal);
    expect(connection.offer().status).toMatchObject({ available: true, reason: "" });
    expect(connection.status().protocolVersion).toBe("2026-07-28");
    expect((await callThrough(connection, "echo", { text: "hello" })).output).toBe("hello");
  });

  test("ORCH-7 tells its changes on a subscription", async () => {
    await using server = await openModernServer();
    await using connection = openConnection({ name: "modern", url: server.url });
    await connection.settled(noSignal);
    await until(() => {
      if (!toolsOf(connection).includes("later")) server.addTool("later");
      return toolsOf(connection).includes("later");
    });
  });

  test("ORCH-8 is checked without a ping, which it does not know", async () => {
    await using server = await openModernServer();
    await using connection = openConnection({
      name: "modern",
      url: server.url,
      healthCheck: { interval: durationFromMs(10), timeout: durationFromMs(2_000) },
    });
    await connection.settled(noSignal);
    const first = connection.status().checkTime;
    await until(() => connection.status().checkTime?.nanos !== first?.nanos);
    expect(connection.status()).toMatchObject({ health: HealthState.HEALTHY, reason: "" });
  });
});
