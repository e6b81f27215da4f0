import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { VERSION } from "#runtime/config/version.ts";
import { runCommand } from "../gen/command.ts";

/** Installs the package where nothing else is, without its scripts, and asks the command and the library who they are. */
export async function proveTarball(directory: string, tarballs: readonly string[]): Promise<void> {
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "package.json"), "{}");
  const quiet = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts"];
  await runCommand("npm", ["install", ...quiet, ...tarballs], { cwd: directory });
  const program = join(directory, "node_modules", ".bin", "toolbus");
  requireAnswer("toolbus --version", await runCommand(program, ["--version"], { cwd: directory }), VERSION);
  const library = 'import { createToolbus } from "toolbus"; console.log(typeof createToolbus);';
  const words = ["--input-type=module", "--eval", library];
  requireAnswer('import "toolbus"', await runCommand(process.execPath, words, { cwd: directory }), "function");
}

/** Installs all wheels, and what they need from PyPI, where nothing else is, and imports each. */
export async function proveWheels(directory: string, wheels: readonly string[]): Promise<void> {
  const uv = await findUv();
  await mkdir(directory, { recursive: true });
  await runCommand(uv, ["venv", "--quiet", ".venv"], { cwd: directory });
  await runCommand(uv, ["pip", "install", "--quiet", "--python", ".venv", ...wheels], { cwd: directory });
  const program = `
import toolbus_sdk
from toolbus import Toolbus
from toolbus.tool.v1 import tool_service_pb2_grpc
print(toolbus_sdk.__version__)`;
  const python = join(directory, ".venv", "bin", "python");
  requireAnswer("import toolbus", await runCommand(python, ["-c", program], { cwd: directory }), VERSION);
}

function requireAnswer(what: string, answer: string, expected: string): void {
  if (answer.trim() !== expected) throw new Error(`${what} says ${JSON.stringify(answer.trim())}, not ${expected}`);
}
