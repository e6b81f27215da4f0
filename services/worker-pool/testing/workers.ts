import { mkdtempSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, type Client, createClient, createRouterTransport } from "@connectrpc/connect";
import { afterAll } from "vitest";
import { type ExecuteToolResponse, ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import {
  type WatchWorkerLogsResponse,
  type WorkerLogLine,
  WorkerService,
} from "#gen/toolbus/worker/v1/worker_service_pb.ts";
import { createLogger } from "#runtime/lifecycle/logger.ts";
import { openProvenCallers } from "#runtime/rpc/access/testing/proven-callers.ts";
import { serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { readConfig } from "../config.ts";
import { createRoutes } from "../routes.ts";
import { openWorkers } from "../service.ts";
import type { Host } from "../worker/host.ts";

/** The environments of test files, which nobody needs again. */
export const uvCache = mkdtempSync(join(tmpdir(), "toolbus-uv-"));
afterAll(() => rm(uvCache, { recursive: true, force: true }));

export const HEAD = "# /// script\n# dependencies = []\n# ///\n";

interface Called {
  result: unknown;
  isError: boolean;
  logs: string[];
  progress: string[];
}

interface CallInput {
  source?: string;
  config?: JsonObject;
  callId?: string;
  timeoutMs?: number;
  options?: CallOptions;
}

/** The worker pool behind Connect's in-memory router, with a real uv and real Python, in a directory of its own. */
export interface TestWorkers extends AsyncDisposable {
  directory: string;
  provider: Client<typeof ToolProviderService>;
  service: Client<typeof WorkerService>;
  /** Writes a tool file; its metadata comes before the text. */
  write(name: string, text: string): Promise<void>;
  /** Calls `source.function`; throws what the RPC throws. */
  call(name: string, args?: object, input?: CallInput): Promise<Called>;
  /** The log lines from here on that the caller is shown, in a list that grows. */
  watchLogs(by?: CallOptions): WorkerLogLine[];
  /** What the service warns its operators of. */
  warnings: readonly string[];
}

/** Nothing is asked of it unless told. */
const noHost = { answer: () => Promise.reject(new Error("there is no bus")) };

let lastCall = 0;

export async function openTestWorkers(
  files: Record<string, string>,
  environment: Record<string, string> = {},
  host: Host = noHost,
): Promise<TestWorkers> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "toolbus-workers-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const write = (name: string, text: string) => writeFile(join(directory, name), text);
  for (const [name, text] of Object.entries(files)) await write(name, text);
  const config = readConfig({
    ...process.env,
    UV_CACHE_DIR: uvCache,
    TOOLBUS_WORKERS: directory,
    TOOLBUS_HOSTED: `${directory}/hosted`,
    TOOLBUS_WORKER_INSTALL_AHEAD: "false",
    TOOLBUS_WORKER_CANCEL_GRACE: "300",
    TOOLBUS_WORKER_CALL_TIMEOUT: "15s",
    TOOLBUS_CONFINEMENT: "off", // inside of one, processes have other ids than those that tests look at
    ...environment,
  });
  const logger = createLogger({ name: "worker-pool", level: "silent" });
  const warnings: string[] = [];
  const told = { info() {}, warn: (_: unknown, text = "") => void warnings.push(text) };
  const watching = new AbortController();
  const workers = stack.use(await openWorkers(config, told, watching.signal, host));
  const { verify, sender } = openProvenCallers();
  const router = { interceptors: serverInterceptors({ logger, verify }) };
  const transport = createRouterTransport(createRoutes(workers.routes), {
    router,
    transport: { interceptors: [sender()] },
  });
  const provider = createClient(ToolProviderService, transport);
  const service = createClient(WorkerService, transport);
  stack.defer(() => watching.abort());
  const owned = stack.move();
  return {
    directory,
    provider,
    service,
    warnings,
    write,
    async call(name, args = {}, input = {}) {
      const [file = "", tool = ""] = name.split(".");
      const { source = file, config, callId = `call-${++lastCall}`, timeoutMs, options } = input;
      const deadline = timeoutMs === undefined ? undefined : timestampFromMs(Date.now() + timeoutMs);
      const from = { name: source, ...(config && { config }) };
      const request = {
        callId,
        source: from,
        tool,
        argumentsJson: JSON.stringify(args),
        ...(deadline && { deadline }),
      };
      return calledFromEvents(provider.executeTool(request, options));
    },
    watchLogs(by = {}) {
      const lines: WorkerLogLine[] = [];
      void collect(service.watchWorkerLogs({}, { ...by, signal: watching.signal }), lines, watching.signal);
      return lines;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function collect(stream: AsyncIterable<WatchWorkerLogsResponse>, lines: WorkerLogLine[], signal: AbortSignal) {
  try {
    for await (const { update } of stream) if (update.case === "line") lines.push(update.value);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function calledFromEvents(events: AsyncIterable<ExecuteToolResponse>): Promise<Called> {
  const called: Called = { result: undefined, isError: false, logs: [], progress: [] };
  let results = 0;
  for await (const { event } of events) {
    if (event.case === "log") called.logs.push(event.value.message);
    if (event.case === "progress") called.progress.push(`${event.value.progress}/${event.value.total}`);
    if (event.case !== "result") continue;
    results += 1;
    called.result = JSON.parse(event.value.outputJson);
    called.isError = event.value.isError;
  }
  if (results !== 1) throw new Error(`${results} results instead of one`);
  return called;
}
