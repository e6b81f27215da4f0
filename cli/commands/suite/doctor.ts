import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { confinementFromReader } from "#runtime/config/confinement.ts";
import { readEnvironment } from "#runtime/config/environment.ts";
import { faultOfNode } from "#runtime/lifecycle/node/faults.ts";
import { tryConfinement } from "#runtime/lifecycle/open-confinement.ts";
import { globalOptionsOf } from "../../global-options.ts";
import { colors, printJson, printLine } from "../../printing/terminal.ts";

interface Check {
  readonly name: string;
  readonly isGood: boolean;
  /** What was found, and what to do if it is not good. */
  readonly text: string;
}

export function addDoctorCommand(program: Command): void {
  program
    .command("doctor")
    .description("Tell how well this machine keeps tools apart from the suite, and callers from each other")
    .addHelpText("after", "\nRun it as the user that runs the worker-pool and the mcp-bridge, with their environment.")
    .action(doctor);
}

async function doctor(_options: object, command: Command): Promise<void> {
  const { json } = globalOptionsOf(command);
  for (const check of [await confinement(), await tracing(), node()]) {
    if (json) printJson(check);
    else printLine(`${check.isGood ? colors.green("ok  ") : colors.yellow("weak")} ${check.text}`);
  }
}

async function confinement(): Promise<Check> {
  const reader = readEnvironment(process.env);
  const config = confinementFromReader(reader);
  reader.finish();
  const possible = await tryConfinement(config);
  const isGood = possible.kind === "confined";
  const text = isGood
    ? `tools run confined by ${possible.confinement.program}: they see no other process and no key of the suite`
    : `tools run unconfined, with all rights of this user: ${possible.reason}. Allow user namespaces, and let bubblewrap be fetched or install it`;
  return { name: "confinement", isGood, text };
}

/** Who may trace a process may read its memory, secrets too. */
async function tracing(): Promise<Check> {
  const path = "/proc/sys/kernel/yama/ptrace_scope";
  const scope = (await readFile(path, "utf8").catch(() => "")).trim(); // a kernel without Yama
  const isGood = scope !== "" && scope !== "0";
  const text = isGood
    ? `processes of one user cannot read each other's memory (${path} is ${scope})`
    : `an unconfined process can read the memory of other processes of its user (${path} is ${scope || "not there"}). As root: sysctl kernel.yama.ptrace_scope=1, where the kernel has it; confined tools are kept apart without it`;
  return { name: "tracing", isGood, text };
}

function node(): Check {
  const fault = faultOfNode();
  return {
    name: "node",
    isGood: fault === undefined,
    text: fault ?? `Node ${process.version} has no fault that is known`,
  };
}
