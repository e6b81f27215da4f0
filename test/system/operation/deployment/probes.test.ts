// What a supervisor of real services hears at TOOLBUS_HEALTH_PORT.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { freePort } from "../../../../examples/free-port.ts";
import { projectRoot } from "../../../architecture/source-files.ts";
import { openTestServer } from "../../../harness/bus.ts";
import { readCompose } from "../../../harness/cluster/compose.ts";
import { startCommand } from "../../../harness/commands/command.ts";

it("a service lives while it waits for NATS, is ready when it is there, and stays so when it is gone for a while", async () => {
  await using server = await openTestServer();
  await server.kill();
  const port = await freePort();
  const env = { NATS_URL: server.url, TOOLBUS_BUS_CREDENTIALS: server.credentials, TOOLBUS_HEALTH_PORT: `${port}` };
  const installed = { program: join(projectRoot, "cli/toolbus.ts"), cwd: projectRoot }; // as containers start it
  await using service = startCommand(["serve", "spaces"], { env, installed });
  const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`).then(({ status }) => status);
  const asked = () => Promise.all([ask("/livez"), ask("/readyz")]);

  await until(() => service.written.stdout.includes('"kind":"waiting"'), { timeoutMs: 20_000 });
  expect(await asked()).toEqual([200, 503]);
  await server.restart();
  await until(async () => (await ask("/readyz")) === 200, { timeoutMs: 20_000, what: "the service to be ready" });
  await server.kill();
  expect(await asked()).toEqual([200, 200]); // a supervisor cannot mend NATS by ending its clients
  await server.restart();
  service.signal("SIGTERM");
  expect(await service.ended).toMatchObject({ exitCode: 0 });
});

it("`up` gives no service the port, of which a suite has one", async () => {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-probes-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true, maxRetries: 20 }) };
  const port = await freePort();
  const args = ["up", "--isolate", "--directory", directory, "--only", "spaces", "caller-relay"];
  await using suite = startCommand(args, { env: { TOOLBUS_HEALTH_PORT: `${port}` } });
  await until(() => suite.written.stdout.includes("toolbus is up"), { timeoutMs: 60_000 });
  await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow();
});

it("every container of a compose file is asked for its health, by a command that tells", async () => {
  const files = [readCompose({ NATS_ROUTES_PASSWORD: "0123456789abcdef" }), readCompose({}, "compose.yaml")];
  const built = files.flatMap(({ services }) =>
    Object.entries(services).filter(([, { build }]) => build !== undefined),
  );
  expect(built.length).toBeGreaterThan(7);
  for (const [name, { environment, healthcheck }] of built) {
    const hasGateway = name === "gateway" || name === "toolbus";
    const place = hasGateway ? "7480/healthz" : `${environment?.TOOLBUS_HEALTH_PORT}/readyz`;
    const [kind, program = "", ...words] = healthcheck?.test ?? [];
    expect([name, kind, program]).toEqual([name, "CMD", "node"]);
    for (const status of [200, 503]) {
      await using answering = await openAnswering(status);
      const exits = words.map((word) => word.replace(`127.0.0.1:${place}`, `127.0.0.1:${answering.port}/`));
      expect(exits).not.toEqual(words);
      const [exitCode] = await once(spawn(process.execPath, exits), "exit");
      expect([name, status, exitCode]).toEqual([name, status, status === 200 ? 0 : 1]);
    }
  }
});

async function openAnswering(status: number): Promise<{ port: number } & AsyncDisposable> {
  const server = createServer((_, response) => response.writeHead(status).end()).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: async () => void (await once(server.close(), "close")) };
}
