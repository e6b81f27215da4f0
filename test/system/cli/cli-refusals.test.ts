// The command `toolbus` when it cannot do what it is asked: it says so, and its exit code tells why.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { openSuite } from "../../../cli/suite/suite.ts";
import { plainAgent } from "../../harness/agents/plain-run.ts";
import { runCommand, startCommand } from "../../harness/commands/command.ts";
import { commandsAt, until } from "../../harness/commands/commands-at.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const stack = new AsyncDisposableStack();
let suite: TestSuite;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ env: plainAgent }));
});
afterAll(() => stack.disposeAsync());

const { toolbus } = commandsAt(() => suite.url);

describe("who asks for what does not fit is told so, and exits with 2", () => {
  it.each([
    [["call"], "missing required argument 'tool'"],
    [["run", "plain"], "missing required argument 'input'"],
    [["nothing"], "unknown command 'nothing'"],
    [["tools", "--nothing"], "unknown option '--nothing'"],
    [["call", "repeat", "{bad", "--agent", "plain"], "the arguments are not JSON: "],
    [["call", "repeat", "{}"], "say on whose behalf: --agent NAME or --session ID"],
    [["run", "plain", "hi", "--max-turns", "0"], "expected a whole number from 1 up"],
    [["run", "plain", "hi", "--tool-choice", ""], "--tool-choice needs a value"],
    [["answer", "room", "call"], "give either an answer as JSON or --refuse WHY"],
    [["answer", "room", "call", "true", "--refuse", "no"], "give either an answer as JSON or --refuse WHY"],
    [["agents", "apply", "nothing.json"], "nothing.json is no agent: ENOENT"],
    [["serve", "gatway"], "(Did you mean gateway?)"],
    [["runs", "shwo", "id"], "unknown command 'shwo' of toolbus runs\n(Did you mean show?)"],
    [["runs", "frobnicate"], "unknown command 'frobnicate' of toolbus runs\nIt has list, show,"],
    [["runs", "list", "--state", "faild"], "(Did you mean failed?)"],
    [["serve", "nothing"], "Allowed choices are caller-relay, gateway, mcp-bridge, orchestrator, spaces,"],
    [["up", "--only", "nothing"], "Allowed choices are caller-relay, gateway, mcp-bridge, orchestrator, spaces,"],
    [["up", "--port", "70000"], "expected a whole number from 0 up to 65535"],
    [["up", "--directory", ""], "it is empty: name a directory, or leave it out"],
    [["up", "--nats", "nats://me:secret@127.0.0.1:x"], "expected a URL like nats://127.0.0.1:4222"],
    [["--url", "nothing", "tools"], "expected one like http://127.0.0.1:7480"],
  ])("%j", async (args, message) => {
    const { exitCode, stdout, stderr } = await toolbus(...args);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("secret");
    expect(stdout).toBe("");
    expect(exitCode).toBe(2);
  });
});

describe("who asks for what does not exist is told so, and exits with 1", () => {
  it.each([
    [["tools", "--agent", "nobody"], 'there is no agent "nobody"'],
    [["run", "nobody", "hi"], 'there is no agent "nobody"'],
    [["run", "palin", "hi"], 'there is no agent "palin" (Did you mean plain?)'],
    [["tools", "--agent", "plian"], 'there is no agent "plian" (Did you mean plain?)'],
    [["mcp", "nobody"], 'there is no agent "nobody"'],
    [["mcp", "palin"], 'there is no agent "palin" (Did you mean plain?)'],
    [["call", "repeat", "{}", "--agent", "nobody"], 'there is no agent "nobody"'],
    [["explain", "nobody", "repeat"], 'there is no agent "nobody"'],
    [["agents", "show", "nobody"], 'there is no agent "nobody"'],
    [["agents", "delete", "nobody"], 'there is no agent "nobody"'],
    [["watch", "run", "nothing"], "there is no run nothing"],
    [["watch", "space", "nowhere"], 'no space "nowhere"'],
    [["answer", "nowhere", "call", "true"], 'no space "nowhere"'],
    [
      ["calls", "result", "nothing", "--output", "/nowhere/file"],
      "ENOENT: no such file or directory, open '/nowhere/file'",
    ],
  ])("%j", async (args, message) => {
    const { exitCode, stdout, stderr } = await toolbus(...args);
    expect(stderr).toContain(`toolbus: ${message}`);
    expect(stderr.trim().split("\n").length, "a line, and one of advice at most").toBeLessThanOrEqual(2);
    expect(stderr, "no trace of the stack").not.toMatch(/^\s+at /m);
    expect(stdout).toBe("");
    expect(exitCode).toBe(1);
  });
});

describe("the address", () => {
  it("where nothing answers: says so and how to start the suite, and exits with 3", async () => {
    const { exitCode, stderr } = await runCommand(["--url", "http://127.0.0.1:9", "tools"]);
    expect(stderr).toBe(
      'toolbus: nothing answers at http://127.0.0.1:9. Start the suite with "toolbus up", or name its address with --url.\n',
    );
    expect(exitCode).toBe(3);
  });

  it("where something else answers: says so, and exits with 3", async () => {
    const page = createServer((_, response) => response.end("hello")).listen(0, "127.0.0.1");
    const url = await until(() => page.listening && `http://127.0.0.1:${(page.address() as AddressInfo).port}`);
    const { exitCode, stderr } = await runCommand(["--url", url, "tools"]);
    page.close();
    expect(stderr).toBe(
      `toolbus: what answers at ${url} is no gateway of toolbus. Name the gateway's address with --url.\n`,
    );
    expect(exitCode).toBe(3);
  });

  it("may come from TOOLBUS_URL", async () => {
    expect(await runCommand(["agents"], { env: { TOOLBUS_URL: suite.url } })).toMatchObject({ exitCode: 0 });
    const { exitCode, stderr } = await runCommand(["agents"], { env: { TOOLBUS_URL: "nothing" } });
    expect(stderr).toContain("TOOLBUS_URL");
    expect(exitCode).toBe(2);
  });

  it("of a gateway that wants keys: a refused key says how to give one, and a good one opens", async () => {
    const key = "0123456789abcdef";
    const directory = join(suite.directory, "second");
    const env = { TOOLBUS_API_KEYS: `alice:${key}`, TOOLBUS_BUS_CREDENTIALS: suite.credentials };
    const { url: natsUrl } = suite.nats;
    await using locked = await openSuite({ directory, port: 0, services: ["gateway"], natsUrl, env });
    const ask = (...args: string[]) => runCommand(["--url", locked.url, "agents", ...args]);
    for (const { exitCode, stderr } of [await ask(), await ask("--api-key", "another-key-of-some")]) {
      expect(stderr).toContain("Give a key with --api-key or TOOLBUS_API_KEY.");
      expect(stderr).not.toContain("another-key-of-some");
      expect(exitCode).toBe(1);
    }
    expect(await ask("--api-key", key)).toMatchObject({ exitCode: 0, stderr: "" });
    const fromEnvironment = { env: { TOOLBUS_API_KEY: key } };
    expect(await runCommand(["--url", locked.url, "agents"], fromEnvironment)).toMatchObject({ exitCode: 0 });
  });
});

it("who cannot write what was asked for says so, and exits with 1", async () => {
  const main = fileURLToPath(new URL("../../../cli/main.ts", import.meta.url));
  const unwritable = openSync(main, "r");
  const command = spawn(process.execPath, [main, "--help"], { stdio: ["ignore", unwritable, "pipe"] });
  closeSync(unwritable);
  const [said, [code]] = await Promise.all([text(Readable.from(command.stderr ?? [])), once(command, "exit")]);
  expect(said).toMatch(/^toolbus: the output cannot be written: EBADF: .*\n$/);
  expect(code).toBe(1);
});

it("who interrupts a call whose session cannot be opened then is told what is waited for, and exits with 130", async () => {
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const routes = connectNodeAdapter({
    routes({ service }) {
      service(SessionService, {
        async createSession() {
          begun.resolve();
          await ended.promise;
          throw new ConnectError("nothing can be stored", Code.Unavailable);
        },
      });
    },
  });
  const gateway = createHttp2Server(routes).listen(0, "127.0.0.1");
  await once(gateway, "listening");
  const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
  await using command = startCommand(["--url", url, "--api-key", "key", "call", "tool", "--agent", "demo"]);
  await begun.promise;
  command.signal("SIGINT");
  const told = () => command.written.stderr.includes("stopping: the session that is being opened is closed first");
  await until(told, { what: "the note", timeoutMs: 5_000 });
  ended.resolve();
  expect(await command.ended).toMatchObject({
    exitCode: 130,
    stderr: expect.stringContaining("nothing can be stored"),
  });
  gateway.close();
});

it("who interrupts a call that fails then exits with 130", async () => {
  const [begun, canceled] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const routes = connectNodeAdapter({
    routes({ service }) {
      service(SessionService, { createSession: () => ({ session: { id: "one" } }), closeSession: () => ({}) });
      service(ToolCallService, { cancelToolCall: () => canceled.resolve() ?? {} });
      service(ToolService, {
        // biome-ignore lint/correctness/useYield: it fails instead
        async *callTool() {
          begun.resolve();
          await canceled.promise;
          throw new ConnectError("the router is gone", Code.Aborted);
        },
      });
    },
  });
  const gateway = createHttp2Server(routes).listen(0, "127.0.0.1");
  await once(gateway, "listening");
  const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
  await using command = startCommand(["--url", url, "--api-key", "key", "call", "tool", "--agent", "demo"]);
  await begun.promise;
  command.signal("SIGINT");
  expect(await command.ended).toMatchObject({ exitCode: 130, stderr: expect.stringContaining("the router is gone") });
  gateway.close();
});
