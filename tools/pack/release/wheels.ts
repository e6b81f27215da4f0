import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { projectRoot as root, runCommand } from "../../gen/command.ts";

/** The Python packages: what tools import, what programs import, and the contract that both of them speak by. */
const PYTHON_PACKAGES = ["sdk/python", "sdk/python-client", "gen/python"];

/** Builds the wheels of all Python packages into a directory; gives their paths. */
export async function packWheels(directory: string): Promise<string[]> {
  const uv = await findUv();
  for (const path of PYTHON_PACKAGES)
    await runCommand(uv, ["build", "--quiet", "--wheel", "--out-dir", directory, join(root, path)], { cwd: root });
  const names = (await readdir(directory)).filter((name) => name.endsWith(".whl"));
  return names.sort().map((name) => join(directory, name));
}
