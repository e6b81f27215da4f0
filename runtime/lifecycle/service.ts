import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Logger } from "./logger.ts";

export interface ServiceContext {
  name: string;
  instance: string;
  logger: Logger;
  /** Aborts at the first signal to stop: waits that take long listen to it. */
  signal: AbortSignal;
  telemetry: Telemetry;
}

/** An open service. What it announces stands in its ready line and goes to its parent: addresses, for example. */
export interface OpenService extends AsyncDisposable {
  readonly announcement?: Record<string, unknown>;
}

/** What a `main.ts` exports. Nothing in it may belong to the process, since services share one. */
export interface ServiceDefinition<C> {
  name: string;
  /** Whether metrics are recorded, for a service that serves them. */
  hasMetrics?: boolean;
  /** How long disposing may take before it is given up and the process exits with 1; 30 s unless told. */
  drainTimeoutMs?: number;
  readConfig: (env: NodeJS.ProcessEnv) => C;
  openService: (config: C, context: ServiceContext) => Promise<OpenService>;
}

/** What a service tells the parent that started its process with an IPC channel. */
export type ServiceMessage =
  | { kind: "ready"; service: string; announcement: Record<string, unknown> }
  | { kind: "failed"; service: string; message: string };

/** Resolves when the message is on its way, or cannot go any more: the loss of a parent is noticed by its signal. */
export function tellParent(message: ServiceMessage): Promise<void> {
  return new Promise((resolve) => {
    if (process.connected && process.send) process.send(message, undefined, undefined, () => resolve());
    else resolve();
  });
}
