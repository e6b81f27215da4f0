import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { programOf } from "../../../test/harness/programs.ts";
import type { World } from "./test-orchestrator.ts";

export interface OrchestratorProcess extends AsyncDisposable {
  readonly child: ChildProcess;
}

/** A real process of the service, which a test may kill. */
export async function openProcess(
  { server, scripts }: World,
  instance: string,
  env: NodeJS.ProcessEnv = {},
): Promise<OrchestratorProcess> {
  const child = spawn(process.execPath, [programOf("services/orchestrator/main")], {
    env: {
      ...process.env,
      NATS_URL: server.url,
      TOOLBUS_BUS_CREDENTIALS: server.credentials,
      TOOLBUS_SCRIPTS: scripts,
      TOOLBUS_INSTANCE: instance,
      TOOLBUS_LOG_LEVEL: "silent",
      ...env,
    },
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  await once(child, "message");
  return {
    child,
    async [Symbol.asyncDispose]() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGKILL");
      await once(child, "exit");
    },
  };
}
