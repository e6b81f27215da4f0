// `toolbus up` and `toolbus serve` as processes: how they begin, share work, and leave nothing behind.

import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, mkdtempDisposable, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Svcm } from "@nats-io/services";
import { expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import { until } from "#runtime/time/until.ts";
import { openConnection } from "../../../cli/connection.ts";
import { keyOfSuiteAt } from "../../../cli/suite/keys/key.ts";
import { listServices } from "../../../cli/suite/service-names.ts";
import { plainAgent } from "../../harness/agents/plain-run.ts";
import { openTestServer } from "../../harness/bus.ts";
import { runCommand, type StartedCommand, startCommand } from "../../harness/commands/command.ts";
import { descendantsOf, untilEnded } from "../../harness/processes.ts";
import { programOf } from "../../harness/programs.ts";

interface StartedSuite extends StartedCommand {
  readonly directory: string;
}

/** `toolbus up` on a free port with a directory of its own; killed at the latest with the test. */
const startSuite = (...args: string[]) => startSuiteWith({}, ...args);

async function startSuiteWith(env: NodeJS.ProcessEnv, ...args: string[]): Promise<StartedSuite> {
  const directory = await mkdtemp(join(tmpdir(), "toolbus test's-up-"));
  const command = startCommand(["up", "--port", "0", "--directory", directory, ...args], {
    env: { ...plainAgent, ...env },
  });
  const dispose = async () => {
    await command[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true, maxRetries: 20 });
  };
  return { ...command, directory, [Symbol.asyncDispose]: dispose };
}

/** The gateway's address, from the line that says that all is ready. */
function readyUrl(suite: StartedCommand): Promise<string> {
  const line = /toolbus is up after [\d.]+ s at (http\S+)|\{"kind":"ready","url":"(http[^"]+)"/;
  const find = () => {
    const [, said, printed] = line.exec(suite.written.stdout) ?? [];
    return said ?? printed;
  };
  return until(find, { timeoutMs: 60_000, what: "the suite to be ready" });
}

/** What goes to standard error may come after the line on standard output that says that all is ready. */
async function untilNoted({ written }: StartedCommand, text: string): Promise<void> {
  await until(() => written.stderr.includes(text), { what: `"${text}" on standard error` });
}

it("BUS-6 `up` starts everything, says where it is, and at SIGINT finishes and leaves nothing behind", async () => {
  await using suite = await startSuite();
  const url = await readyUrl(suite);
  expect(suite.written.stdout).toContain("survives the end of any process");
  expect(suite.written.stdout).toContain("Try: toolbus agents");
  for (const service of listServices()) await untilNoted(suite, `${service}-1 ready (`);
  expect(
    await runCommand(["run", "plain", "hello", "--url", url], { env: { TOOLBUS_DIRECTORY: suite.directory } }),
  ).toMatchObject({ exitCode: 0 });

  const family = await descendantsOf(suite.pid);
  expect(family.length, "the services, and the server").toBeGreaterThanOrEqual(2);
  suite.signal("SIGINT");
  const { exitCode, stderr } = await suite.ended;
  expect(stderr).toContain("stopping: what is in flight is finished first");
  expect(stderr).not.toContain("ended (");
  expect(exitCode).toBe(0);
  await untilEnded(family);
});

it("PROD-1 a second `up` says where the first one is, and `down` stops that one", async () => {
  await using suite = await startSuite("--only", "gateway", "tool-router");
  const url = await readyUrl(suite);
  const ofSuite = ["--directory", suite.directory];
  const second = await runCommand(["up", "--port", "0", ...ofSuite], { env: plainAgent });
  expect(second).toMatchObject({ exitCode: 1, stdout: "" });
  expect(second.stderr).toContain(`is up at ${url} already, started by process ${suite.pid}: "toolbus down" stops it`);
  expect((await fetch(`${url}/healthz`)).status, "the first one has noticed nothing").toBe(200);

  const down = await runCommand(["down", ...ofSuite]);
  expect(down).toMatchObject({ exitCode: 0, stdout: `the suite at ${url} is down\n` });
  expect(await suite.ended).toMatchObject({ exitCode: 0 });
  const again = await runCommand(["down", ...ofSuite]);
  expect(again).toMatchObject({ exitCode: 0, stdout: "", stderr: `no suite of ${suite.directory} is up\n` });
  const inJson = await runCommand(["down", "--json", ...ofSuite]);
  expect(JSON.parse(inJson.stdout)).toEqual({ directory: suite.directory });
});

it("PROD-1 `down` stops a suite that is starting, too", async () => {
  await using suite = await startSuite("--only", "gateway", "tool-router");
  await untilNoted(suite, "starting 2 services");
  const down = await runCommand(["down", "--directory", suite.directory]);
  expect(down).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^the suite .* is down\n$/) });
  expect(await suite.ended).toMatchObject({ exitCode: 0 });
});

it("PROD-3 `up` that is stopped while nats-server is fetched waits for no download", async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), "toolbus-test-up-"));
  await writeFile(join(folder.path, "uv"), "#!/bin/sh\nexec sleep 600\n", { mode: 0o755 });
  const PATH = `${folder.path}:/usr/bin:/bin`;
  await using suite = await startSuiteWith(
    { PATH, XDG_CACHE_HOME: folder.path, TOOLBUS_NATS_SERVER: "" },
    "--only",
    "spaces",
  );
  await untilNoted(suite, "fetching nats-server");
  const early = await runCommand(["--url", "http://127.0.0.1:1", "agents"], {
    env: { TOOLBUS_DIRECTORY: suite.directory },
  });
  expect(early.stderr).toContain("Wait until the suite is up, which is starting");
  suite.signal("SIGINT");
  expect(await suite.ended).toMatchObject({ exitCode: 0 });
});

it("an empty TOOLBUS_DIRECTORY is none, as compose files pass it, and an empty --directory is refused beside it", async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), "toolbus-test-up-"));
  const options = { env: { TOOLBUS_DIRECTORY: "" }, installed: { program: programOf("cli/main"), cwd: folder.path } };
  const down = await runCommand(["down"], options);
  const stderr = `no suite of ${join(folder.path, ".toolbus")} is up\n`;
  expect(down).toMatchObject({ exitCode: 0, stdout: "", stderr });
  expect(await runCommand(["down", "--directory", ""], options)).toMatchObject({ exitCode: 2, stdout: "" });
});

it("PROD-1 `down` lets a suite stop in order that was interrupted in its start", async () => {
  await using suite = await startSuite("--only", "gateway", "tool-router");
  await untilNoted(suite, "starting 2 services");
  suite.signal("SIGINT");
  await runCommand(["down", "--directory", suite.directory]);
  expect(await suite.ended).toMatchObject({ exitCode: 0 });
  expect(await readdir(suite.directory)).not.toContain("suite.json");
});

it("PROD-1 a second `up` beside a suite without a gateway says that it is up", async () => {
  await using suite = await startSuite("--only", "spaces");
  await until(() => suite.written.stdout.includes("toolbus is up"), {
    timeoutMs: 60_000,
    what: "the suite to be ready",
  });
  expect(suite.written.stdout).toMatch(
    /^toolbus is up after [\d.]+ s, without a gateway\nWhat is [^\n]+ Ctrl-C stops it\.\n$/,
  );
  const second = await runCommand(["up", "--port", "0", "--directory", suite.directory], { env: plainAgent });
  expect(second).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("is up already, started by process") });
  suite.signal("SIGTERM");
  expect(await suite.ended).toMatchObject({ exitCode: 0 });
});

it("SEC-1 `up` makes a key that its user alone can read, shows it once, and nobody gets in without it", async () => {
  await using suite = await startSuite("--only", "gateway", "tool-router");
  const url = await readyUrl(suite);
  const path = join(suite.directory, "keys", "local");
  const key = (await readFile(path, "utf8")).trim();
  expect(key).toMatch(/^tb_[\w-]{43}$/);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(suite.written.stdout).toContain(`Its key is ${key}\n`);
  const curl = suite.written.stdout.match(/Other clients send it: (curl .*)/)?.[1] ?? "";
  const { stdout } = await promisify(execFile)("sh", ["-c", curl]);
  expect(JSON.parse(stdout)).toHaveProperty("agents");

  const commandIn = (directory: string) =>
    runCommand(["agents", "--url", url], { env: { TOOLBUS_DIRECTORY: directory } });
  expect(await commandIn(suite.directory)).toMatchObject({ exitCode: 0 });
  expect(await commandIn(join(suite.directory, "elsewhere"))).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("Give a key with --api-key or TOOLBUS_API_KEY."),
  });
  const applied = await fetch(`${url}/toolbus.agent.v1.AgentService/ApplyAgent`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      agent: { name: "sly", sources: [{ name: "sh", provider: "mcp", config: { command: "sh" } }] },
    }),
  });
  expect(applied.status).toBe(401);

  suite.signal("SIGTERM");
  await suite.ended;
  await using imposter = createServer((request, response) => {
    response.end(String(request.headers.authorization)); // whoever listens at the address of a suite that has ended
  }).listen(Number(new URL(url).port), "127.0.0.1");
  await once(imposter, "listening");
  expect(keyOfSuiteAt(url, suite.directory)).toBe(undefined);

  const again = ["up", "--port", "0", "--directory", suite.directory, "--only", "gateway"];
  await using next = startCommand(again, { env: plainAgent });
  await readyUrl(next);
  expect(next.written.stdout).toContain(`Its key is in ${path}`);
  expect(next.written.stdout + next.written.stderr).not.toContain(key);
  next.signal("SIGTERM");
  await next.ended;

  await chmod(path, 0o644);
  const { exitCode, stderr } = await runCommand(again, { env: plainAgent });
  expect(stderr).toContain(`others can read the key in ${path}: chmod 600 it`);
  expect(exitCode).toBe(1);
});

it("SEC-1 `up --no-auth` lets everybody of this machine in, and keys beside it are refused", async () => {
  await using suite = await startSuite("--only", "gateway", "tool-router", "--no-auth");
  const url = await readyUrl(suite);
  expect((await fetch(`${url}/metrics`)).status).toBe(200);
  expect(suite.written.stdout).not.toContain("key");
  suite.signal("SIGTERM");
  await suite.ended;
  const args = ["up", "--port", "0", "--directory", suite.directory, "--only", "gateway", "--no-auth"];
  const { exitCode, stderr } = await runCommand(args, { env: { TOOLBUS_API_KEYS: "alice:0123456789abcdef" } });
  expect(stderr).toContain("TOOLBUS_AUTH");
  expect(exitCode).toBe(1);
});

it("`up` that is killed takes everything with it, and its directory serves the next one", async () => {
  await using suite = await startSuite("--json", "--isolate");
  await readyUrl(suite);
  const family = await descendantsOf(suite.pid);
  expect(family.length, "each service, and the server").toBeGreaterThan(listServices().length);
  suite.signal("SIGKILL");
  await suite.ended;
  await untilEnded(family);
  const ignored = join(suite.directory, ".gitignore");
  await writeFile(ignored, ""); // as a disk that was full leaves it

  const args = ["up", "--port", "0", "--directory", suite.directory, "--only", "tool-router", "gateway"];
  await using next = startCommand(args, { env: plainAgent });
  await readyUrl(next);
  expect(await readFile(ignored, "utf8")).toBe("*\n");
  next.signal("SIGTERM");
  expect(await next.ended).toMatchObject({ exitCode: 0 });
});

it("BUS-2 `serve` beside `up` shares its work, on a server that runs already, whose keys no line tells", async () => {
  await using server = await openTestServer();
  const { url: natsUrl, login, credentials: TOOLBUS_BUS_CREDENTIALS } = server;
  await using suite = await startSuiteWith({ TOOLBUS_BUS_CREDENTIALS }, "--json", "--logs", "--nats", natsUrl);
  const url = await readyUrl(suite);
  expect(suite.written.stdout).toContain(JSON.stringify(natsUrl));

  await using second = startCommand(["serve", "tool-router"], {
    env: { ...plainAgent, NATS_URL: natsUrl, TOOLBUS_BUS_CREDENTIALS, TOOLBUS_HTTP_PRT: "8080" },
  });
  await untilNoted(second, "TOOLBUS_HTTP_PRT is ignored");
  await until(() => second.written.stdout.includes('"msg":"ready"'), { timeoutMs: 30_000, what: "the second router" });
  await using bus = await openBus({ url: natsUrl, login, name: "test" });
  const client = new Svcm(bus.connection).client({ strategy: "stall", maxWait: 1_000 });
  const requestsByInstance = async () => {
    const counts: number[] = [];
    for await (const { endpoints = [] } of await client.stats("tool-router")) {
      counts.push(endpoints.reduce((sum, endpoint) => sum + endpoint.num_requests, 0));
    }
    return counts;
  };
  const before = await requestsByInstance();
  expect(before).toHaveLength(2);
  const agents = openConnection({ url, apiKey: keyOfSuiteAt(url, suite.directory) }).client(AgentService);
  const areShared = async () => {
    await Promise.all(Array.from({ length: 20 }, () => agents.listAgents({})));
    const after = await requestsByInstance();
    return after.length === 2 && Math.min(...after) >= Math.min(...before) + 10;
  };
  await until(areShared, { timeoutMs: 20_000, what: "both to be asked" });

  second.signal("SIGINT");
  expect(await second.ended).toMatchObject({ exitCode: 0 });
  await agents.listAgents({});
  suite.signal("SIGINT");
  const { exitCode, stdout, stderr } = await suite.ended;
  expect(exitCode).toBe(0);
  const seed = await readFile(join(TOOLBUS_BUS_CREDENTIALS, "tool-router.nk"), "utf8");
  expect(stdout + stderr).not.toContain(seed.trim());
});

it("`up` on a port that is taken, or in a directory that is, says so and what to do", async () => {
  await using first = await startSuite("--only", "gateway");
  const port = new URL(await readyUrl(first)).port;
  await using second = await startSuite("--only", "gateway", "--port", port);
  const ignored = join(second.directory, ".gitignore");
  await writeFile(ignored, "node_modules\n");
  const { exitCode, stderr } = await second.ended;
  expect(await readFile(ignored, "utf8"), "a list that is there stays").toBe("node_modules\n");
  expect(stderr).toContain(`toolbus: gateway cannot start: cannot listen on 127.0.0.1:${port}: the port is taken`);
  expect(stderr).toContain("choose another port with --port.");
  expect(exitCode).toBe(1);

  const third = await runCommand(["up", "--port", "0", "--directory", first.directory]);
  expect(third.stderr).toMatch(
    /already, started by process \d+: "toolbus down" stops it, --directory starts another one\n$/,
  );
  expect(third.exitCode).toBe(1);
});

it("`up` and `doctor` say which file of the machine they cannot use", async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), "toolbus-test-up-"));
  const installed = { program: programOf("cli/main"), cwd: folder.path };
  const state = join(folder.path, ".toolbus");
  await writeFile(state, "");
  const up = await runCommand(["up", "--port", "0"], { installed });
  expect(up.stderr).toMatch(
    /^toolbus: the suite cannot keep its state in \S+\.toolbus: E\w+: [^\n]+\n--directory names another one\.\n$/,
  );
  expect(up.exitCode).toBe(1);
  expect(await readFile(state, "utf8")).toBe("");
  await mkdir(join(folder.path, ".env"));
  for (const command of ["up", "doctor"]) {
    const { exitCode, stderr } = await runCommand([command], { installed });
    expect(stderr).toBe(
      `toolbus: ${join(folder.path, ".env")} cannot be read: EISDIR: illegal operation on a directory, read\n`,
    );
    expect(exitCode).toBe(1);
  }
  await rm(join(folder.path, ".env"), { recursive: true });
  const inside = await mkdtemp(join(folder.path, "state-"));
  await writeFile(join(inside, "nats"), "");
  const second = await runCommand(["up", "--port", "0", "--only", "spaces", "--directory", inside], { installed });
  expect(second.stderr).toContain(`toolbus: the suite cannot keep its state in ${inside}: E`);
});

it("`up` says which files are refused, what is wrong with each, and which variable is ignored", async () => {
  const tools = await mkdtemp(join(tmpdir(), "toolbus-test-tools-"));
  await writeFile(join(tools, "bent.json"), '{ "name": "bent", "executionType": "space", "visible": false }');
  const args = ["up", "--port", "0", "--directory", join(tools, "state"), "--only", "tool-router", "gateway"];
  await using suite = startCommand(args, { env: { ...plainAgent, TOOLBUS_TOOLS: tools, TOOLBUS_HTTP_PRT: "80" } });
  await readyUrl(suite);
  await untilNoted(suite, "TOOLBUS_HTTP_PRT is ignored");
  await untilNoted(suite, "bent.json: visible: a space tool is always visible");
  suite.signal("SIGTERM");
  await suite.ended;
  await rm(tools, { recursive: true, force: true, maxRetries: 20 });
});
