import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { Era, HealthState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { tickedMs } from "#runtime/time/testing/machine-time.ts";
import { until } from "#runtime/time/until.ts";
import { callThrough, oddServerIn, openConnection } from "./connection.ts";

const lateServer = new URL("./servers/late-server.ts", import.meta.url).pathname;
const noSignal = new AbortController().signal;

describe("a server over stdio that does not start as it should", () => {
  test("ORCH-6 one that hangs is unavailable after its own startup timeout, with the reason", async () => {
    await using connection = openConnection({ ...oddServerIn("hang"), startupTimeout: durationFromMs(500) });
    await connection.settled(noSignal);
    expect(connection.offer().status).toMatchObject({
      available: false,
      reason: "it was not initialised within 500 ms (TOOLBUS_MCP_STARTUP_TIMEOUT, or startupTimeout of the server)",
    });
    expect(connection.status().health).toBe(HealthState.UNHEALTHY);
  });

  test("ORCH-6 one that initialises and never lists is unavailable likewise", async () => {
    await using connection = openConnection({ ...oddServerIn("no-list"), startupTimeout: durationFromMs(1_500) });
    await connection.settled(noSignal);
    expect(connection.offer().status.reason).toMatch(
      /^it has not listed its tools within 1500 ms \(.*startupTimeout of the server\)$/,
    );
  });

  test("ORCH-6 one that crashes at its start is unavailable with its exit code and its last words", async () => {
    await using connection = openConnection(oddServerIn("crash"));
    await connection.settled(noSignal);
    expect(connection.offer().status.reason).toMatch(/exited with 7: no configuration found/);
    await expect(callThrough(connection, "echo")).rejects.toMatchObject({
      code: "unavailable",
      reason: "MCP_SERVER_UNAVAILABLE",
    });
  });

  test("ORCH-6 one that crashes when it is asked for its tools is so, too", async () => {
    await using connection = openConnection(oddServerIn("crash-at-list"));
    await connection.settled(noSignal);
    const { reason } = connection.offer().status;
    expect(reason).toMatch(/^its tools cannot be listed: .*exited with 7: no configuration found$/);
  });

  test("ORCH-6 how often it was tried, and what it wrote last, stand beside its health", async () => {
    await using connection = openConnection(oddServerIn("crash"));
    await until(() => connection.status().attemptCount >= 2, { what: "a further attempt" });
    const { lastLines } = connection.status();
    expect(lastLines.length).toBeGreaterThan(1);
    expect(new Set(lastLines)).toEqual(new Set(["no configuration found"]));
  });

  test("ORCH-6 what it writes is kept in bounds, and without secrets", async () => {
    const noise = 'for (let n = 0; n < 50; n++) console.error(n, "x".repeat(1000), "hunter2-hunter2")';
    const secrets = { password: "hunter2-hunter2" };
    await using connection = openConnection(
      { name: "loud", command: process.execPath, args: ["-e", noise] },
      { secrets },
    );
    const isWhole = () => connection.status().lastLines.some((line) => line.startsWith("49 "));
    await until(isWhole, { what: "its last line" });
    const { lastLines } = connection.status();
    expect(lastLines).toHaveLength(20);
    for (const line of lastLines) expect(line.length).toBeLessThanOrEqual(500);
    await using short = openConnection(
      { name: "short", command: process.execPath, args: ["-e", 'console.error("it is hunter2-hunter2")'] },
      { secrets },
    );
    await until(() => short.status().lastLines.length > 0, { what: "its line" });
    expect(short.status().lastLines.join()).not.toContain("hunter2");
  });

  test("ORCH-6 of a stack trace, however long, the errors are told", async () => {
    const frames = "\tat org.example.factory.Wiring.start(Wiring.java:1)\n".repeat(100);
    const [last, cause] = ["RuntimeException: no context", "Caused by: IllegalStateException: DATABASE_URL is not set"];
    const place = " at [Source: (File); line: 1, column: 2]"; // Jackson tells of a configuration where its fault is
    const trace = [last, `${frames}${cause}`, place, `${frames}\t... 9 more\n`].join("\n");
    const args = ["-e", `process.stderr.write(${JSON.stringify(trace)}); process.exitCode = 1`];
    await using connection = openConnection({ name: "jvm", command: process.execPath, args });
    await connection.settled(noSignal);
    expect(connection.offer().status.reason).toMatch(
      new RegExp(`exited with 1: ${last}\n${cause}\n at .Source: .* column: 2]$`),
    );
    expect(new Set(connection.status().lastLines)).toEqual(new Set([last, cause, place]));
  });

  test("ORCH-6 a command that does not exist is named, and how it could be there", async () => {
    await using connection = openConnection({ name: "none", command: "no-such-command-anywhere" });
    await connection.settled(noSignal);
    expect(connection.offer().status.reason).toBe(
      "the command no-such-command-anywhere is not on the PATH: install it, or start the server by npx, uvx or the like, which fetch it",
    );
  });

  test("ORCH-6 attempts that fail alike are warned of once", async () => {
    const warnings: string[] = [];
    const onWarning = (text: string) => void warnings.push(text);
    await using connection = openConnection({ name: "none", command: "no-such-command-anywhere" }, { onWarning });
    const attempts = () => connection.status().checkTime;
    await connection.settled(noSignal);
    const first = attempts();
    await until(() => attempts()?.nanos !== first?.nanos, { what: "a further attempt" });
    expect(warnings).toHaveLength(1);
  });

  test("one that exits at a question of a later revision is asked in its own way", async () => {
    await using connection = openConnection(oddServerIn("exit-on-probe"));
    await connection.settled(noSignal);
    expect(connection.offer().status).toMatchObject({ available: true, reason: "" });
  });

  test("ORCH-6 one of both eras that takes its time to read is spoken with in the one that it was asked in", async () => {
    const late = { name: "late", command: process.execPath, args: [lateServer, "2500"] };
    await using connection = openConnection({ ...late, startupTimeout: durationFromMs(6_000) });
    expect((await callThrough(connection, "echo", { text: "late" })).output).toBe("late");
    expect(connection.status().protocolVersion).toBe("2026-07-28");
  });

  test("ORCH-6 one that does not answer what it does not know costs that time once, and none where its era is declared", async () => {
    const silent = { ...oddServerIn("silent"), startupTimeout: durationFromMs(4_000) };
    await using connection = openConnection(silent);
    expect((await callThrough(connection, "echo", { text: "found" })).output).toBe("found");
    await callThrough(connection, "die").catch(() => {});
    const timed = async (one: typeof connection) => {
      const startedAtMs = tickedMs();
      expect((await callThrough(one, "echo", { text: "quick" })).output).toBe("quick");
      return tickedMs() - startedAtMs;
    };
    expect(await timed(connection)).toBeLessThan(1_500);
    await using declared = openConnection({ ...silent, era: Era.LEGACY });
    expect(await timed(declared)).toBeLessThan(1_500);
  });

  test("one that floods stderr is not blocked by it", async () => {
    await using connection = openConnection(oddServerIn("flood"));
    expect((await callThrough(connection, "echo", { text: "through" })).output).toBe("through");
  });
});
