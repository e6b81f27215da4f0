// A talk with an agent on the command line, by lines that are piped in and in a real terminal.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { writeFiles } from "../../harness/agents/write-files.ts";
import { type StartedCommand, startCommand } from "../../harness/commands/command.ts";
import { commandsAt, until } from "../../harness/commands/commands-at.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const agent = (name: string, tools = {}) =>
  JSON.stringify({ name, model: { provider: "scripted", model: name }, tools });
const script = (...turns: object[]) => JSON.stringify({ turns });
const asks = {
  name: "approve",
  executionType: "space",
  visible: true,
  outputSchema: { type: "object", properties: { approved: { type: "boolean" } }, required: ["approved"] },
};
const files = {
  "agents/echo.json": agent("echo"),
  "models/echo.json": script({ text: "You said {{input}}." }),
  "agents/slow.json": agent("slow"),
  "models/slow.json": script({ text: "one two three four five six seven eight nine ten", deltaDelayMs: 500 }),
  "agents/pensive.json": agent("pensive", { use: ["approve"] }),
  "models/pensive.json": script(
    { calls: [{ name: "enter_space", arguments: { space_id: "office" } }] },
    { calls: [{ name: "approve", arguments: { refund: 50 } }], delayMs: 3_000 },
    { text: "It is {{result.1}}." },
  ),
  "agents/careful.json": agent("careful", { use: ["approve"] }),
  "models/careful.json": script(
    { calls: [{ name: "enter_space", arguments: { space_id: "desk" } }] },
    { calls: [{ name: "approve", arguments: { refund: 40 } }] },
    { text: "It is {{result.1}}." },
  ),
  "tools/approve.json": JSON.stringify(asks),
};

const stack = new AsyncDisposableStack();
let suite: TestSuite;
let suiteEnv: NodeJS.ProcessEnv;
beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-chat-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  await writeFiles(directory, files);
  suiteEnv = {
    TOOLBUS_AGENTS: join(directory, "agents"),
    TOOLBUS_SCRIPTS: join(directory, "models"),
    TOOLBUS_TOOLS: join(directory, "tools"),
  };
  suite = stack.use(await openTestSuite({ env: suiteEnv }));
});
afterAll(() => stack.disposeAsync());

const { toolbus, toolbusWith } = commandsAt(() => suite.url);

function chatInTerminal(...args: string[]): StartedCommand {
  return startCommand(["--url", suite.url, "chat", ...args], { terminal: true });
}

async function shows(chat: StartedCommand, text: string | RegExp): Promise<void> {
  await until(() => new RegExp(text).test(stripVTControlCharacters(chat.written.stdout)));
}

async function isOpen(told: string): Promise<boolean> {
  const [, sessionId = ""] = /session (\S+) with/.exec(told) ?? [];
  const { session } = await suite.connection.client(SessionService).getSession({ sessionId });
  return session?.state === SessionState.ACTIVE;
}

describe("toolbus chat", () => {
  it("PROD-2 answers each line that is piped in, in one session, and closes it", async () => {
    const ended = await toolbusWith({ input: "hello\n\nbye" }, "chat", "echo");
    expect(ended).toMatchObject({ exitCode: 0, stdout: "You said hello.\nYou said bye.\n" });
    expect(await isOpen(ended.stderr)).toBe(false);
  });

  it("PROD-2 goes on in a session, and leaves it open", async () => {
    const first = await toolbusWith({ input: "hello\n" }, "chat", "echo", "--keep");
    const [, sessionId = ""] = /go on: toolbus chat echo --session (\S+)\n$/.exec(first.stderr) ?? [];
    await toolbus("run", "echo", "elsewhere", "--session", sessionId);
    const second = await toolbusWith({ input: "again\n" }, "chat", "echo", "--session", sessionId);
    expect(second).toMatchObject({ exitCode: 0, stdout: "You said again.\n" });
    expect(await isOpen(first.stderr)).toBe(true);
  });

  it("PROD-2 fails where a run fails, and where there is no such agent", async () => {
    expect(await toolbusWith({ input: "hello\n" }, "chat", "ehco")).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/ehco/),
    });
  });

  it("PROD-2 stops an answer at Ctrl-C, takes what is pasted as one message, and ends at Ctrl-D", async () => {
    await using slow = chatInTerminal("slow");
    await shows(slow, /> $/);
    slow.type("count\r");
    await shows(slow, "one two");
    slow.type("\x03");
    await shows(slow, /canceled.*> $/s);
    expect(slow.written.stdout).not.toContain("ten");
    slow.type("\x04");
    expect((await slow.ended).exitCode).toBe(0);
    expect(await isOpen(slow.written.stdout)).toBe(false);

    await using echo = chatInTerminal("echo");
    await shows(echo, /> $/);
    echo.type("two\rlines\r");
    await shows(echo, /You said two\r?\nlines\..*> $/s); // as long as an answer goes on, Ctrl-C stops that
    echo.type("\x03");
    expect((await echo.ended).exitCode).toBe(0);
  });

  it("PROD-2 asks for an approval in the chat, again where the answer does not fit, and goes on with it", async () => {
    await toolbus("spaces", "create", "desk");
    await using chat = chatInTerminal("careful");
    await shows(chat, /> $/);
    chat.type("refund\r");
    await shows(chat, /approve: \{"refund":40\}.*answer> $/s);
    chat.type("perhaps\r");
    await shows(chat, /that is not yes or no\r?\n.*answer> $/s);
    chat.type("yes\r");
    await shows(chat, 'It is \\{"approved":true\\}\\.');
    chat.type("\x04");
    expect((await chat.ended).exitCode).toBe(0);
  });

  it("PROD-2 takes no line that was typed before the question for its answer, but for what is said next", async () => {
    await toolbus("spaces", "create", "office");
    await using chat = chatInTerminal("pensive");
    await shows(chat, /> $/);
    chat.type("refund\r");
    await shows(chat, "enter_space");
    chat.type("yes\r");
    await shows(chat, /approve: \{"refund":50\}.*answer> $/s);
    chat.type("no\r");
    await shows(chat, 'It is \\{"approved":false\\}\\.');
    await shows(chat, /It is .*enter_space/s);
  });

  it("PROD-2 whose input ends at a question leaves it, says how to answer it, and ends", async () => {
    const ended = await toolbusWith({ input: "refund\n" }, "chat", "careful");
    expect(ended.exitCode).toBe(0);
    expect(ended.stderr).toMatch(
      /waits for a person in the space desk: approve .*\n +toolbus answer desk \S+ .*\nwatch it: toolbus watch run run_\w+/s,
    );
    expect(await isOpen(ended.stderr)).toBe(true);
  });

  it("PROD-2 tells that the suite is away, and goes on with the next line", async () => {
    await using other = await openTestSuite({ env: suiteEnv });
    await using chat = startCommand(["--url", other.url, "chat", "echo"], { terminal: true });
    await shows(chat, /> $/);
    await other.stop();
    chat.type("hello\r");
    await shows(chat, /nothing answers at .*> $/s);
  });
});
