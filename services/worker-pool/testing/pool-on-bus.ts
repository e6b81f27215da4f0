import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import { type DurationSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type { RunBoundsSchema } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import {
  ExecuteToolRequestSchema,
  type ExecuteToolResponse,
  ToolProviderService,
} from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import type { Builtin } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { createLogger } from "#runtime/lifecycle/logger.ts";
import { encodeRunContext } from "#runtime/rpc/run-context.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { clientFor } from "../../clients.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";

export interface Outcome {
  /** The result, or the text of the tool's error. */
  value: unknown;
  isError: boolean;
  events: ExecuteToolResponse["event"][];
}

export interface CallInput {
  tool: string;
  args?: object;
  callId?: string;
  timeoutMs?: number;
  source?: { name: string; config?: JsonObject };
  builtinPolicy?: {
    builtin: Builtin;
    allowedPaths?: string[];
    allowedCommands?: string[];
    timeout?: MessageInitShape<typeof DurationSchema>;
  };
  scope?: { sessionId: string; agent: string; contextRevision?: number; principal?: string; runId?: string };
  bounds?: MessageInitShape<typeof RunBoundsSchema>;
  allowedTools?: string[];
  config?: JsonObject;
}

/** The whole service on a real nats-server, and its provider's door. */
export interface PoolOnBus extends AsyncDisposable {
  bus: TestBus;
  provider: Client<typeof ToolProviderService>;
  /** A directory that goes with the service, by its real path. */
  directory: string;
  /** Throws what the RPC throws. */
  call(input: CallInput, signal?: AbortSignal): Promise<Outcome>;
}

let lastCall = 0;

export async function openPoolOnBus(
  environment: (directory: string) => Record<string, string> = () => ({}),
): Promise<PoolOnBus> {
  await using stack = new AsyncDisposableStack();
  const directory = await realpath(await mkdtemp(join(tmpdir(), "toolbus-pool-")));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  const bus = stack.use(await openTestBus());
  const { url, credentials } = bus.server;
  const config = readConfig({
    ...process.env,
    NATS_URL: url,
    TOOLBUS_BUS_CREDENTIALS: credentials,
    TOOLBUS_WORKERS: join(directory, "workers"),
    TOOLBUS_HOSTED: join(directory, "hosted"),
    TOOLBUS_CONFINEMENT: "off", // inside of one, processes have other ids than those that tests look at
    ...environment(directory),
  });
  const telemetry = await openTelemetry({ service: "worker-pool" });
  const logger = createLogger({ name: "worker-pool", level: "silent" });
  const signal = new AbortController().signal;
  stack.use(await openService(config, { name: "worker-pool", instance: "one", logger, telemetry, signal }));
  const provider = clientFor(bus, ToolProviderService, { process: "worker-pool" });
  const owned = stack.move();
  return {
    bus,
    provider,
    directory,
    async call({ args = {}, timeoutMs, callId = `call-${++lastCall}`, bounds, allowedTools, ...more }, signal) {
      const narrowed = { ...(bounds && { bounds }), ...(allowedTools && { allowedTools: [{ names: allowedTools }] }) };
      const rest = { ...more, runContext: encodeRunContext(narrowed) };
      const argumentsJson = JSON.stringify(args);
      const deadline = timeoutMs === undefined ? undefined : timestampFromMs(Date.now() + timeoutMs);
      const request = create(ExecuteToolRequestSchema, {
        ...rest,
        callId,
        argumentsJson,
        ...(deadline && { deadline }),
      });
      const events = provider.executeTool(request, signal ? { signal } : {});
      return outcomeFrom(await Array.fromAsync(events, ({ event }) => event));
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function outcomeFrom(events: ExecuteToolResponse["event"][]): Outcome {
  const results = events.flatMap((event) => (event.case === "result" ? [event.value] : []));
  const [result] = results;
  if (results.length !== 1 || !result) throw new Error(`${results.length} results instead of one`);
  const value: unknown = JSON.parse(result.outputJson);
  const isError = result.isError;
  return { value: isError ? (value as { error: string }).error : value, isError, events };
}
