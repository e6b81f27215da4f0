import { fileURLToPath } from "node:url";
import { type ChildProcess, openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";

/** A router under a name of its own as a process, which can be killed. */
export async function openRouterProcess(env: Record<string, string>, name: string): Promise<ChildProcess> {
  const program = fileURLToPath(new URL("./named-router.ts", import.meta.url));
  const args = [program, name];
  const child = await openChildProcess({ command: process.execPath, args, env: { ...process.env, ...env } });
  for await (const line of child.lines()) {
    if (JSON.parse(line).msg === "ready") return child;
  }
  throw new Error(`the router did not start: ${child.stderrTail()}`);
}
