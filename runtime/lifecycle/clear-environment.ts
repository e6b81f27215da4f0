// What a process was started with stands in `/proc/<pid>/environ` for as long as it lives, whatever it deletes from
// `process.env`: every process of the same user may read it there, tools among them. So a process that was started with more than
// the platform's variables starts itself anew, in place: same process id, same terminal, same standard streams. It takes the other
// variables back into its memory from a file that only its user can read, and which it removes before it does anything else.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { platformEnvironment } from "../config/platform-environment.ts";

const HANDED_OVER = "TOOLBUS_HANDED_OVER";
/** In memory, where there is one: a secret that never was on a disk need not be removed from it. */
const SHARED_MEMORY = "/dev/shm";

/** To be called before anything else is loaded or opened. Does not return when the process has to start anew. */
export function clearEnvironment(): void {
  if (takeBack()) return;
  const kept = platformEnvironment();
  const others = Object.entries(process.env).filter(([name]) => !(name in kept));
  // A channel to a parent would be lost: a parent of ours has started this process with the platform's variables only.
  if (others.length === 0 || process.connected || process.execve === undefined) return;
  const directory = mkdtempSync(join(existsSync(SHARED_MEMORY) ? SHARED_MEMORY : tmpdir(), "toolbus-"));
  const path = join(directory, "environment.json");
  writeFileSync(path, JSON.stringify(Object.fromEntries(others)), { mode: 0o600 });
  const words = [...process.execArgv, ...process.argv.slice(1)];
  process.execve(process.execPath, [process.execPath, ...words], {
    ...kept,
    [HANDED_OVER]: path,
  } as NodeJS.Dict<string>);
}

/** Whether this is the process that was started anew. */
function takeBack(): boolean {
  const path = process.env[HANDED_OVER];
  if (path === undefined) return false;
  delete process.env[HANDED_OVER];
  Object.assign(process.env, JSON.parse(readFileSync(path, "utf8")));
  rmSync(dirname(path), { recursive: true });
  return true;
}
