// The command `toolbus` as it follows what happens, and takes part in it.

import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AuditEventSchema, AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { WatchAuditEventsResponseSchema } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService, WatchSpaceResponseSchema } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { plainAgent } from "../../harness/agents/plain-run.ts";
import { startCommand } from "../../harness/commands/command.ts";
import { commandsAt, messagesIn, until } from "../../harness/commands/commands-at.ts";
import { openTestSuite, type TestSuite } from "../../harness/suite.ts";

const stack = new AsyncDisposableStack();
let suite: TestSuite;
beforeAll(async () => {
  suite = stack.use(await openTestSuite({ env: plainAgent }));
});
afterAll(() => stack.disposeAsync());

async function stateOf(sessionId: string): Promise<SessionState | undefined> {
  const { session } = await suite.connection.client(SessionService).getSession({ sessionId });
  return session?.state;
}

const { toolbus, follow } = commandsAt(() => suite.url);

describe("what happens, as it happens", () => {
  it("a run waits for a person: `watch space` shows the question, `answer` answers it, and the run goes on", async () => {
    await suite.connection.client(SpaceService).createSpace({ spaceId: "office", title: "Office" });
    await using space = follow("watch", "space", "office");
    await using events = follow("watch", "space", "office", "--json");
    await using run = follow("run", "asker", "office");
    const asked = /waits for an answer asker ask\(\{"question":"Shall it be\?"\}\) (\S+)/;
    const callId = await until(() => asked.exec(space.written.stdout)?.[1], { what: "the question in the space" });
    const soFar = /^I go and ask\.\n→ enter_space .*\n✓ .*\n→ ask /;
    await until(() => soFar.test(run.written.stdout), { what: "text and calls so far" });

    const waiting = await toolbus("answers");
    expect(waiting.stdout).toMatch(/^ask of asker, since \S+Z.*\n {2}.*Shall it be\?.*\n/);
    expect(waiting.stdout).toContain(`  toolbus answer office ${callId} 'JSON'\n`);
    expect(JSON.parse((await toolbus("answers", "--json")).stdout)).toMatchObject({ calls: [{ callId }], runs: [] });

    const { stdout: top } = await toolbus("top");
    expect(top).toMatch(/services serve\nruns {2}1 in progress .* 1 wait for people/);
    expect(top).toMatch(/\nrun_\w+ +asker +in progress +2 /);
    expect(JSON.parse((await toolbus("top", "--once", "--json")).stdout)).toMatchObject({
      runs: [{ agent: "asker" }],
      waitingForPeople: 1,
    });

    expect(await toolbus("answer", "office", callId, "{bad")).toMatchObject({ exitCode: 2, stdout: "" });
    const answered = await toolbus("answer", "office", callId, '{"word":"yes"}');
    expect(answered).toMatchObject({ exitCode: 0, stdout: `answered ${callId}\n`, stderr: "" });
    expect(await run.ended).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("I was told yes.\n") });
    await until(() => space.written.stdout.includes("tool.done"), { what: "the answer in the space" });
    const kinds = await until(() => {
      const seen = messagesIn(WatchSpaceResponseSchema, events.written.stdout).map(({ update }) =>
        update.case === "event" ? update.value.event.case : undefined,
      );
      return seen.includes("toolDone") && seen;
    });
    expect(kinds).toContain("toolRequiresAction");
    expect(await toolbus("answers")).toMatchObject({
      exitCode: 0,
      stdout: "",
      stderr: "nothing waits for an answer\n",
    });
  });

  it("PROD-3 `run` says who is waited for and how to answer, and closes the session that it opened", async () => {
    await suite.connection.client(SpaceService).createSpace({ spaceId: "desk", title: "Desk" });
    await using run = follow("run", "asker", "desk");
    const told = /waits for a person in the space desk: ask .*\n {2}toolbus (answer desk \S+) 'JSON'/;
    const command = await until(() => told.exec(run.written.stderr)?.[1], { what: "the advice" });
    const [, sessionId = ""] = /in session (\S+)/.exec(run.written.stderr) ?? [];
    expect(await stateOf(sessionId)).toBe(SessionState.ACTIVE);
    expect(await toolbus(...command.split(" "), '{"word":"yes"}')).toMatchObject({ exitCode: 0 });
    expect(await run.ended).toMatchObject({ exitCode: 0 });
    expect(run.written.stderr.match(/waits for a person/g), "said once").toHaveLength(1);
    expect(await stateOf(sessionId)).toBe(SessionState.CLOSED);
    const again = await toolbus("run", "plain", "hello", "--keep");
    expect(await stateOf(/in session (\S+)/.exec(again.stderr)?.[1] ?? "")).toBe(SessionState.ACTIVE);
  });

  it("PROD-3 `run | head` closes its session, too, when the run has ended", async () => {
    await using run = follow("run", "plain", "hello");
    run.stopReading();
    const { exitCode, stderr } = await run.ended;
    expect(exitCode).toBe(0);
    expect(await stateOf(/in session (\S+)/.exec(stderr)?.[1] ?? "")).toBe(SessionState.CLOSED);
  });

  it("PROD-3 Ctrl-C leaves the run as it is, says how to go on, and exits with 130", async () => {
    await suite.connection.client(SpaceService).createSpace({ spaceId: "lobby" });
    await using run = follow("run", "asker", "lobby");
    await until(() => run.written.stderr.includes("waits for a person"), { what: "the run to wait" });
    run.signal("SIGINT");
    const { exitCode, stderr } = await run.ended;
    expect(exitCode).toBe(130);
    const [, watch = "", id = ""] =
      /goes on: toolbus (watch run (\S+)) shows it, toolbus runs cancel (\S+) ends it\n$/.exec(stderr) ?? [];
    await using watched = follow(...watch.split(" "));
    await until(() => watched.written.stdout.includes("→ ask"), { what: "the run to be shown" });
    expect(await toolbus("runs", "cancel", id)).toMatchObject({ exitCode: 0 });
  });

  it("`spaces` creates, lists, shows and speaks in spaces, and `inbox` shows what an agent will read of it", async () => {
    expect(await toolbus("spaces", "create", "hall", "--title", "The hall")).toMatchObject({ exitCode: 0 });
    await suite.connection.client(SessionService).createSession({ sessionId: "listener", agent: "plain" });
    await suite.connection
      .client(SpaceService)
      .enterSpace({ spaceId: "hall", member: { case: "agent", value: { sessionId: "listener", agent: "former" } } });
    await using inbox = follow("inbox", "listener", "--agent", "former", "--follow"); // which no run of it takes away
    await using space = follow("spaces", "watch", "hall");
    const sent = await toolbus("spaces", "send", "hall", "Is anybody here?", "--as", "Eve");
    expect(sent).toMatchObject({ exitCode: 0, stdout: "Eve: Is anybody here?\n", stderr: "" });
    await until(() => inbox.written.stdout.startsWith('[Eve: "Is anybody here?"] msg:hall:'), { what: "the inbox" });
    await until(() => space.written.stdout.includes("Eve joined\nEve: Is anybody here?\n"), { what: "the space" });
    expect((await toolbus("spaces")).stdout).toMatch(/^hall +former, Eve +The hall$/m);
    const shown = await toolbus("spaces", "show", "hall");
    expect(shown.stdout).toBe("hall The hall\nformer, Eve · 1 of 1 messages\nEve: Is anybody here?\n");
    const unknown = await toolbus("spaces", "show", "nowhere");
    expect(unknown).toMatchObject({
      exitCode: 1,
      stdout: "",
      stderr: expect.stringMatching(/no space "nowhere".*hall/),
    });
    expect(await toolbus("inbox", "listener")).toMatchObject({ exitCode: 0, stdout: "" });
  });

  it("a person may refuse, which is the tool's error", async () => {
    await suite.connection.client(SpaceService).createSpace({ spaceId: "closed" });
    await using events = follow("watch", "space", "closed", "--json");
    await using run = follow("run", "asker", "closed");
    const callId = await until(() => /"toolRequiresAction".*"callId":"([^"]+)"/.exec(events.written.stdout)?.[1]);
    expect(await toolbus("answer", "closed", callId, "--refuse", "not today")).toMatchObject({ exitCode: 0 });
    expect((await run.ended).stdout).toMatch(/^✗ .*not today/m);
  });

  it("`watch audit` shows what the suite decides, of one agent if asked", async () => {
    await using all = follow("watch", "audit", "--json");
    await using own = follow("watch", "audit", "--agent", "asker");
    const decided = () => {
      const { stdout } = all.written;
      const whole = stdout.slice(0, stdout.lastIndexOf("\n"));
      return whole === ""
        ? []
        : messagesIn(WatchAuditEventsResponseSchema, whole).map(({ update }) =>
            update.case === "event" ? update.value : undefined,
          );
    };
    const isDecided = (agent: string, kind: AuditKind) =>
      decided().some((event) => event?.agent === agent && event.kind === kind);
    await until(async () => {
      await toolbus("call", "repeat", '{"text":"hi"}', "--agent", "plain");
      await toolbus("call", "repeat", '{"text":"hi"}', "--agent", "asker");
      const hasBoth = isDecided("plain", AuditKind.PERMITTED) && isDecided("asker", AuditKind.BLOCKED);
      return hasBoth && own.written.stdout.includes("\n");
    });
    expect(own.written.stdout).toMatch(/^\S+Z {2}blocked +tool-router {2}agent asker, session \S+, tool repeat {2}/);
    expect(own.written.stdout).not.toContain("plain");
  });

  it("ORCH-11 `audit` lists what was decided, by agent, kind, tool and time, and goes on with what comes", async () => {
    const blocked = ["audit", "--agent", "asker", "--kind", "blocked", "--tool", "repeat"];
    await toolbus("call", "repeat", '{"text":"hi"}', "--agent", "asker");
    const list = await until(async () => {
      const told = await toolbus(...blocked, "--since", "1h", "--json");
      return told.stdout !== "" && told;
    });
    for (const event of messagesIn(AuditEventSchema, list.stdout)) {
      expect(event).toMatchObject({
        agent: "asker",
        kind: AuditKind.BLOCKED,
        tool: "repeat",
        rule: "not in tools.use",
      });
    }
    expect(await toolbus(...blocked, "--since", "2099-01-01")).toMatchObject({ exitCode: 0, stdout: "" });
    expect((await toolbus("audit", "--limit", "1")).stdout.split("\n")).toHaveLength(2);
    await using followed = follow(...blocked, "--limit", "1", "--follow");
    await until(async () => {
      await toolbus("call", "repeat", '{"text":"hi"}', "--agent", "asker");
      return followed.written.stdout.split("\n").length > 3;
    });
    const lines = followed.written.stdout.trimEnd().split("\n");
    expect(lines.every((line) => / blocked +tool-router {2}agent asker, .*tool repeat/.test(line))).toBe(true);
    expect(new Set(lines).size).toBe(lines.length);
    expect(await toolbus("audit", "--kind", "nonsense")).toMatchObject({ exitCode: 2 });
    expect(await toolbus("audit", "--since", "yesterday")).toMatchObject({ exitCode: 2 });
  });

  it.each([
    ["dumb", false],
    ["xterm", true],
  ])("a terminal whose TERM is %s gets colours: %s", async (TERM, gets) => {
    const options = { terminal: true, env: { TERM, NO_COLOR: "", CI: "" } };
    await using agents = startCommand(["--url", suite.url, "agents"], options);
    expect((await agents.ended).stdout.includes("\x1b[")).toBe(gets);
  });

  it("PROD-2 `top` goes on over a fault, and says since when", async () => {
    await using other = await openTestSuite({ env: plainAgent });
    await using top = startCommand(["--url", other.url, "top", "--interval", "0.2"], { terminal: true });
    await until(() => top.written.stdout.includes("services serve"));
    await other.stop();
    await until(() =>
      /since \d\d:\d\d:\d\d UTC: nothing answers at/.test(stripVTControlCharacters(top.written.stdout)),
    );
    top.type("\x03");
    expect((await top.ended).exitCode).not.toBe(0);
    expect(await toolbus("top", "--interval", "soon")).toMatchObject({ exitCode: 2 });
  });

  it("what changes something says in JSON, too, what it has done", async () => {
    for (const words of ["spaces create annex", "spaces grant annex bob"])
      expect(JSON.parse((await toolbus(...words.split(" "), "--json")).stdout)).toMatchObject({
        space: { id: "annex" },
      });
  });

  it("a reader that has enough is no fault", async () => {
    await using events = follow("watch", "audit", "--json");
    const makeNews = () => toolbus("call", "repeat", '{"text":"hi"}', "--agent", "plain");
    await until(async () => (await makeNews()) && events.written.stdout !== "");
    events.stopReading();
    let isOver = false;
    void events.ended.then(() => {
      isOver = true;
    });
    await until(async () => (await makeNews()) && isOver);
    expect(await events.ended).toMatchObject({ exitCode: 0, stderr: "" });
  });
});
