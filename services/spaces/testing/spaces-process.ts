import { type ChildProcess, openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import type { TestBus } from "../../../test/harness/bus.ts";
import { programOf } from "../../../test/harness/programs.ts";

/** An instance as a process of its own, which can be killed. */
export async function openSpacesProcess(bus: TestBus, instance: string): Promise<ChildProcess> {
  const main = programOf("services/spaces/main");
  const { url, credentials } = bus.server;
  const own = { NATS_URL: url, TOOLBUS_BUS_CREDENTIALS: credentials, TOOLBUS_INSTANCE: instance };
  const child = await openChildProcess({ command: process.execPath, args: [main], env: { ...process.env, ...own } });
  for await (const line of child.lines()) {
    if (JSON.parse(line).msg === "ready") return child;
  }
  throw new Error(`spaces did not start: ${child.stderrTail()}`);
}
