// What a process was started with can be read by every process of the same user, for as long as it lives.

import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readLogin } from "#runtime/bus/credentials/directory.ts";
import { until } from "#runtime/time/until.ts";
import { listServices, variablesOfService } from "../../../cli/suite/service-names.ts";
import { plainAgent } from "../../harness/agents/plain-run.ts";
import { openTestServer } from "../../harness/bus.ts";
import { runCommand, type StartedCommand, startCommand } from "../../harness/commands/command.ts";
import { descendantsOf } from "../../harness/processes.ts";

const gatewayKey = "canary-of-the-gateway";
const canaries = {
  TOOLBUS_API_KEYS: `me:${gatewayKey}`,
  OPENAI_API_KEY: "canary-of-the-model",
  ANTHROPIC_API_KEY: "canary-of-another-model",
  TOOLBUS_SECRET_MAIL: "canary-of-a-tool",
};

const ready = (suite: StartedCommand) =>
  until(() => /"kind":"ready","url":"(http[^"]+)"/.exec(suite.written.stdout)?.[1], {
    timeoutMs: 60_000,
    what: "the suite to be ready",
  });

async function environmentsOf(pids: readonly number[]): Promise<string> {
  const read = pids.map((pid) => readFile(`/proc/${pid}/environ`, "utf8").catch(() => "")); // it may have ended
  return (await Promise.all(read)).join("\n");
}

test.each([[[]], [["--isolate"]]])(
  "SEC-3 no process of `toolbus up %s` shows a secret that it was given by the shell, and all are used",
  async (options: string[]) => {
    const directory = await mkdtemp(join(tmpdir(), "toolbus-test-environment-"));
    await using _ = { [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true, maxRetries: 20 }) };
    await using suite = startCommand(["--json", "up", "--port", "0", "--directory", directory, ...options], {
      env: { ...plainAgent, ...canaries },
    });
    const url = await ready(suite);
    const pids = [suite.pid, ...(await descendantsOf(suite.pid))];
    expect(pids.length).toBeGreaterThanOrEqual(options.length === 0 ? 3 : 9);
    const environments = await environmentsOf(pids);
    expect(environments).toContain("PATH=");
    expect(environments).not.toContain("canary");
    const { seed } = await readLogin(join(directory, "bus"), "gateway");
    expect(environments).not.toContain(seed);
    expect(await runCommand(["agents", "--url", url])).toMatchObject({ exitCode: 1 });
    expect(await runCommand(["agents", "--url", url], { env: { TOOLBUS_API_KEY: gatewayKey } })).toMatchObject({
      exitCode: 0,
    });
    suite.signal("SIGINT");
    expect(await suite.ended).toMatchObject({ exitCode: 0 });
  },
);

test("SEC-3 `toolbus serve` takes secrets from files, and shows none that it was given by its environment", async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-test-environment-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }) };
  const secrets = join(directory, "secrets");
  await mkdir(join(secrets, "..data"), { recursive: true }); // as Kubernetes mounts them
  await writeFile(join(secrets, "TOOLBUS_API_KEYS"), `${canaries.TOOLBUS_API_KEYS}\n`);
  await using server = await openTestServer();
  const { url: NATS_URL, credentials: TOOLBUS_BUS_CREDENTIALS } = server;
  await using gateway = startCommand(["serve", "gateway"], {
    env: { NATS_URL, TOOLBUS_BUS_CREDENTIALS, TOOLBUS_HTTP_PORT: "0", TOOLBUS_SECRETS_DIRECTORY: secrets },
  });
  const url = await until(() => /"url":"(http[^"]+)"/.exec(gateway.written.stdout)?.[1], { timeoutMs: 30_000 });
  expect((await fetch(`${url}/metrics`)).status).toBe(401);
  expect((await fetch(`${url}/metrics`, { headers: { "x-api-key": gatewayKey } })).status).toBe(200);
  const environment = await environmentsOf([gateway.pid]);
  expect(environment).toContain("PATH=");
  expect(environment).not.toContain((await readLogin(TOOLBUS_BUS_CREDENTIALS, "gateway")).seed);
});

test("SEC-3 a service is handed the variables that it reads, and no secret of another one", async () => {
  const env = {
    ...canaries,
    TOOLBUS_WORKER_IDLE: "5s",
    TOOLBUS_MCP_ENVIRONMENT: "EXTRA",
    EXTRA: "x",
    TOOLBUS_BUS_CREDENTIALS: "keys",
  };
  const readers = async (name: string) => {
    const given = listServices().map(async (service) => ({ service, of: await variablesOfService(service, env) }));
    return (await Promise.all(given)).filter(({ of }) => of[name] !== undefined).map(({ service }) => service);
  };
  expect(await readers("TOOLBUS_API_KEYS")).toEqual(["gateway"]);
  expect(await readers("OPENAI_API_KEY")).toEqual(["orchestrator"]);
  expect(await readers("ANTHROPIC_API_KEY")).toEqual(["orchestrator"]);
  expect(await readers("TOOLBUS_SECRET_MAIL")).toEqual(["mcp-bridge", "tool-router", "worker-pool"]);
  expect(await readers("TOOLBUS_WORKER_IDLE")).toEqual(["worker-pool"]);
  expect(await readers("EXTRA")).toEqual(["mcp-bridge", "orchestrator"]);
  expect(await readers("TOOLBUS_BUS_CREDENTIALS")).toEqual(listServices());
});
