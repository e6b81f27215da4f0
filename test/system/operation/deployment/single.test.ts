// compose.yaml: one container of all. What stands in it is started here as a process, with paths and a port of this machine.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { projectRoot } from "../../../architecture/source-files.ts";
import { readCompose } from "../../../harness/cluster/compose.ts";
import { dockerfile } from "../../../harness/cluster/dockerfile.ts";
import { isDocumented } from "../../../harness/cluster/settings.ts";
import { runCommand, startCommand } from "../../../harness/commands/command.ts";

const compose = readCompose({}, "compose.yaml");
const { toolbus } = compose.services;
const environment = toolbus?.environment ?? {};

it("is one service, which only this machine reaches", () => {
  expect(Object.keys(compose.services)).toEqual(["toolbus"]);
  expect(toolbus).toMatchObject({ build: ".", ports: ["127.0.0.1:7480:7480"], working_dir: "/project" });
  expect(compose.name).not.toBe(readCompose({ NATS_ROUTES_PASSWORD: "0123456789abcdef" }).name);
});

it("keeps in a volume what it keeps, and changes nothing in the project", () => {
  expect(Object.keys(compose.volumes)).toEqual(["state"]);
  expect(toolbus?.volumes).toEqual([
    `state:${environment.TOOLBUS_DIRECTORY}`,
    { type: "bind", source: ".", target: "/project", read_only: true },
  ]);
  expect(dockerfile).toContain(` ${environment.TOOLBUS_DIRECTORY}\n`); // its owner is the user of the image
});

it("sets what the settings know, and no key", () => {
  expect(Object.keys(environment).filter((name) => !isDocumented(name))).toEqual([]);
  expect(Object.keys(environment).filter((name) => /KEY|SECRET|PASSWORD|TOKEN/.test(name))).toEqual([]);
});

it("starts, answers, and has its key and its sessions again in the next container", { timeout: 120_000 }, async () => {
  const root = await mkdtemp(join(tmpdir(), "toolbus-single-"));
  await using _ = { [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true, maxRetries: 20 }) };
  const project = join(root, "project");
  await runCommand(["init", project]);
  const here = (text: string) => text.replace("/var/lib/toolbus", join(root, "state")).replace("/project", project);
  const entries = Object.entries(environment).map(([name, value]) => [name, here(value)]);
  const options = {
    env: { ...Object.fromEntries(entries), TOOLBUS_HTTP_PORT: "0" },
    installed: { program: join(projectRoot, "cli/toolbus.ts"), cwd: project },
  };
  const key = () => readFile(join(root, "state/keys/local"), "utf8");

  const first = startCommand(toolbus?.command ?? [], options);
  await using _first = first;
  await until(() => first.written.stdout.includes("toolbus is up"), { timeoutMs: 60_000 });
  expect(first.written.stdout).toContain('run demo "hello"');
  expect(await runCommand(["run", "demo", "hello", "--keep"], options)).toMatchObject({ exitCode: 0 });
  const { stdout: sessions } = await runCommand(["sessions", "--json"], options);
  expect(sessions).toContain("demo");
  const made = await key();
  first.signal("SIGTERM");
  expect(await first.ended).toMatchObject({ exitCode: 0 });

  const second = startCommand(toolbus?.command ?? [], options);
  await using _second = second;
  await until(() => second.written.stdout.includes("toolbus is up"), { timeoutMs: 60_000 });
  expect(await key()).toBe(made);
  expect((await runCommand(["sessions", "--json"], options)).stdout).toBe(sessions);
});
