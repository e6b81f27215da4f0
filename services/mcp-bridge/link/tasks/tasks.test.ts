import { describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { callThrough, openConnection, startCall } from "../../testing/connection.ts";
import { eventsOf } from "../../testing/events.ts";
import { openTaskServer } from "../../testing/servers/task-server.ts";

const everything = new URL(
  "../../../../node_modules/@modelcontextprotocol/server-everything/dist/index.js",
  import.meta.url,
).pathname;
const result = { content: [{ type: "text", text: "found" }] };

describe("a call that is answered with a task", () => {
  test("ORCH-7 is followed to its result, with what the server says meanwhile: server-everything", async () => {
    await using connection = openConnection({ name: "all", command: process.execPath, args: [everything] });
    const { output, progress } = await callThrough(connection, "simulate-research-query", { topic: "tea" });
    expect(output).toMatch(/tea/);
    // A stage takes as long as the server wants polls to be apart, so that one of them may be missed.
    const stages = /^(Gathering sources|Analyzing content|Synthesizing findings)\.\.\.$/;
    expect(progress.filter(({ message }) => stages.test(message)).length).toBeGreaterThan(0);
  });

  describe.for(["legacy", "modern"] as const)("of the %s era", (era) => {
    test("ORCH-7 is polled as the server wishes, until it is completed, failed or canceled", async () => {
      await using server = await openTaskServer(era);
      await using connection = openConnection({ name: "tasks", url: server.url });
      const called = callThrough(connection, "research");
      await until(() => server.asked.filter((method) => method === "tasks/get").length >= 2);
      server.task = { status: "completed", result };
      expect((await called).output).toBe("found");
      expect(server.asked.filter((method) => method === "tools/call")).toHaveLength(1);
      if (era === "legacy") expect(server.ttl).toBeGreaterThan(60_000);
      server.task = {
        status: "failed",
        error: { code: -32_000, message: "it broke" },
        result: { ...result, isError: true },
      };
      expect((await callThrough(connection, "research")).result).toMatchObject({ isError: true });
      server.task = { status: "cancelled" };
      expect((await callThrough(connection, "research")).output).toEqual({ error: "the server canceled it" });
    });

    test("LOOP-15 is canceled at the server when nobody waits for it any more", async () => {
      await using server = await openTaskServer(era);
      await using connection = openConnection({ name: "tasks", url: server.url });
      const leaving = new AbortController();
      const called = eventsOf(startCall(connection, "research", {}, { signal: leaving.signal }));
      await until(() => server.asked.includes("tasks/get"));
      leaving.abort(new Error("left"));
      await expect(called).rejects.toThrow("left");
      await until(() => server.asked.includes("tasks/cancel"));
    });

    test("is never called again: it is followed over outages and lost sessions, else its outcome is unknown", async () => {
      await using server = await openTaskServer(era);
      await using connection = openConnection({ name: "tasks", url: server.url });
      const called = callThrough(connection, "research");
      await until(() => server.asked.includes("tasks/get"));
      server.fail("tasks/get", 404, 1);
      await until(() => server.asked.filter((method) => method === "tasks/get").length >= 3);
      server.fail("tasks/get", 503, 2);
      await until(() => server.asked.filter((method) => method === "tasks/get").length >= 7);
      server.task = { status: "completed", result };
      expect((await called).output).toBe("found");
      expect(server.asked.filter((method) => method === "tools/call")).toHaveLength(1);

      server.task = {};
      const lost = callThrough(connection, "research", {}, { deadlineMs: Date.now() + 3_000 });
      lost.catch(() => {}); // looked at below
      await until(() => server.asked.filter((method) => method === "tools/call").length === 2);
      server.fail("tasks/get", 503, 1_000);
      await expect(lost).rejects.toMatchObject({ reason: "OUTCOME_UNKNOWN" });
      expect(server.asked.filter((method) => method === "tools/call")).toHaveLength(2);
    });
  });
});
