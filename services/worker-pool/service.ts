import { openAuditTrail } from "#runtime/audit/trail.ts";
import { openServiceBus } from "#runtime/bus/credentials/service-bus.ts";
import { findUv } from "#runtime/bus/nats-server/find/find-uv.ts";
import { openInstances } from "#runtime/bus/ownership/instances/instances.ts";
import { OtherInstances } from "#runtime/bus/ownership/instances/other-instances.ts";
import { instanceService } from "#runtime/bus/ownership/ownership.ts";
import { createChanges } from "#runtime/collections/changes.ts";
import { createRedaction } from "#runtime/content/redaction.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import type { ResourceLimits } from "#runtime/lifecycle/child-process/child-process.ts";
import type { Confinement } from "#runtime/lifecycle/child-process/confinement.ts";
import type { Logger } from "#runtime/lifecycle/logger.ts";
import { openConfinement } from "#runtime/lifecycle/open-confinement.ts";
import type { OpenService, ServiceContext } from "#runtime/lifecycle/run-service.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { unlessAborted } from "#runtime/time/unless-aborted.ts";
import { ACCESS } from "../access.ts";
import { createBuiltIns } from "./built-ins/built-ins.ts";
import type { WorkerLimits, WorkerPoolConfig } from "./config.ts";
import { createInspect } from "./files/inspector.ts";
import { openToolDirectory } from "./files/tool-directory.ts";
import { type OfferedFile, sourceFromFile, type ToolFile } from "./files/tool-file.ts";
import { type HostedModules, openHostedModules } from "./hosted/hosted-modules.ts";
import { createLogHub, type LogHub } from "./logs/log-hub.ts";
import { type WrittenLine, writtenLineFromText } from "./logs/log-line.ts";
import { createLine, createPermits } from "./pool/permits.ts";
import { Pool } from "./pool/pool.ts";
import { createExecution } from "./provider/execution.ts";
import { Fleet } from "./provider/fleet/fleet.ts";
import { createSpread } from "./provider/fleet/spread-calls.ts";
import { createOffers } from "./provider/offers.ts";
import { createSecrets } from "./provider/secrets.ts";
import { createRunCall } from "./provider/tool-calls.ts";
import { idOfWorker, refusedFilesFrom, workersFrom } from "./provider/workers-list.ts";
import { createRoutes, type WorkerPoolRoutes } from "./routes.ts";
import { createHost } from "./subscriptions/host.ts";
import { createPeers, hasNotBegun } from "./subscriptions/peers.ts";
import { installEnvironment } from "./worker/environment/environment.ts";
import { Installations } from "./worker/environment/installations.ts";
import type { Host } from "./worker/host.ts";
import { openWorker } from "./worker/open-worker.ts";

const NAME = "worker-pool";

export async function openService(config: WorkerPoolConfig, context: ServiceContext): Promise<OpenService> {
  const { logger, telemetry, signal } = context;
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openServiceBus(config, context, ACCESS["worker-pool"].stores));
  const { instance } = config;
  const trail = stack.use(openAuditTrail(bus, NAME, logger));
  const { routes, pool, hasFile } = stack.use(await openWorkers(config, logger, signal, createHost(bus, telemetry)));
  const onError = (error: unknown) => logger.warn({ err: error }, "looking for other instances failed");
  const instances = stack.use(await openInstances(bus, NAME, onError));
  const { partOf, runAt } = createPeers(bus, NAME, telemetry);
  const fleet = new Fleet(routes.part, new OtherInstances({ instance, instances, partOf, logger }));
  const { run, runGiven } = createSpread({
    own: routes.run,
    callsOfWorker: config.worker.calls,
    hasFile,
    pool,
    fleet,
    runAt,
    hasNotBegun,
  });
  const served = { instance, logger, telemetry };
  const own = {
    ...served,
    service: instanceService(NAME, instance),
    routes: createRoutes({ ...routes, run: runGiven }),
  };
  stack.use(await serveOnBus(bus, own));
  stack.use(
    await serveOnBus(bus, {
      ...served,
      service: NAME,
      routes: createRoutes({ ...routes, part: fleet, run, audit: trail.record }),
    }),
  );
  return stack.move();
}

/** Everything behind the routes; of the bus it needs only what the host reaches. */
export async function openWorkers(
  config: WorkerPoolConfig,
  logger: Pick<Logger, "info" | "warn">,
  stopping: AbortSignal,
  host: Host,
) {
  await using stack = new AsyncDisposableStack();
  const finding = config.uv ?? findUv({ signal: stopping });
  const [uv, confinement] = await Promise.all([finding, openConfinement(config.confinement, logger)]);
  const redact = createRedaction(config.secrets);
  const secrets = createSecrets(config.secrets, config.secretPrefix);
  const logs = createLogHub();
  const inspect = createInspect({ uv, environment: config.installEnvironment, confinement });
  // Side by side, as each starts a process to read its files.
  const reading = openToolDirectory({ directory: config.directory, inspect, logger }).then((it) => stack.use(it));
  const parts = { config, confinement, logs, redact, logger };
  const loading = openModules(parts).then((it) => stack.use(it));
  await Promise.allSettled([reading, loading]);
  const [directory, hosted] = await Promise.all([reading, loading]);
  const files = () => directory.files();
  const installations = stack.use(createInstallations(uv, parts));
  const pool = stack.use(
    new Pool({
      ...config,
      find: (file) => directory.find(file),
      watchInstall: (file, onLine) => installations.watch(file, onLine),
      onLine: (source, line) => writeUnlabelled(logs, source, line),
      onCrash: (at, detail) => logger.warn(at, `a worker failed: ${detail}`),
      start: async (file, start) =>
        openWorker({
          ...start,
          uv,
          file,
          redact,
          python: await unlessAborted(installations.python(file), start.signal),
          limits: config.worker,
          confinement,
          environment: config.workerEnvironment,
          startTimeoutMs: config.times.startMs,
          cancelGraceMs: config.times.cancelGraceMs,
        }),
    }),
  );
  const installAhead = (files: readonly ToolFile[]) => {
    if (config.installsAhead) installations.installAhead(files.filter((file) => file.kind === "offered"));
  };
  installAhead(files());
  const onChange = (changed: readonly string[]) => {
    pool.renew(changed);
    installAhead(files().filter(({ file }) => changed.includes(file)));
  };
  stack.use(directory.changes.listen(onChange));
  const changes = createChanges();
  directory.changes.listen(changes.tell);
  hosted.changes.listen(changes.tell);
  const commands = { searchPath: config.commandPath, limits: resourceLimitsFrom(config.worker), confinement };
  const permits = createPermits(config.pool.calls, "places of built-ins", createLine(config.pool));
  const builtIns = stack.use(createBuiltIns({ commands, callMs: config.times.callMs, permits }));
  const hasFile = (file: string) => directory.find(file) !== undefined;
  const { instance } = config;
  const { callMs } = config.times;
  const routes: WorkerPoolRoutes = {
    offer: createOffers({ directory, hosted, secrets }),
    changes,
    run: createRunCall(createExecution({ pool, builtIns, hosted, host, secrets, logs, hasFile, callMs })),
    part: {
      async list() {
        const found = [...files(), ...hosted.files()];
        const slots = [...pool.slots(), ...hosted.pool.slots()];
        return { workers: workersFrom({ files: found, slots, instance }), refusedFiles: refusedFilesFrom(found) };
      },
      async stop(id, force) {
        const isWanted = ({ file, start }: { file: string; start: number }) =>
          idOfWorker({ instance, file, start }) === id;
        return (await pool.stop(isWanted, force)) || (await hosted.pool.stop(isWanted, force));
      },
      watchLogs: (filter, watching) => logs.watch(filter, watching),
    },
    stopping,
  };
  const owned = stack.move();
  return { routes, pool, hasFile, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function resourceLimitsFrom({ memoryBytes, processorSeconds }: WorkerLimits): ResourceLimits {
  return { ...(memoryBytes > 0 && { memoryBytes }), ...(processorSeconds > 0 && { processorSeconds }) };
}

interface Parts {
  config: WorkerPoolConfig;
  confinement: Confinement | undefined;
  logs: LogHub;
  redact: (text: string) => string;
  logger: Pick<Logger, "info" | "warn">;
}

function openModules({ config, confinement, logs, redact, logger }: Parts): Promise<HostedModules> {
  return openHostedModules({
    ...config.hosted,
    pool: config.pool,
    times: config.times,
    environment: config.workerEnvironment,
    confinement,
    maxLineBytes: config.worker.maxLineBytes,
    redact,
    onLine: (source, line) => writeUnlabelled(logs, source, line),
    logger,
  });
}

function createInstallations(uv: string, { config, confinement, logs, redact, logger }: Parts): Installations {
  const install = async (file: OfferedFile, onLine: (line: string) => void, signal: AbortSignal) => {
    const startedAtMs = performance.now();
    try {
      const python = await installEnvironment({
        uv,
        file,
        environment: config.installEnvironment,
        confinement,
        timeoutMs: config.times.installMs,
        signal,
        onLine(written) {
          const line = redact(written);
          onLine(line);
          writeUnlabelled(logs, sourceFromFile(file.file), writtenLineFromText(line, Date.now()));
        },
      });
      logger.info(
        { file: file.file, tookMs: Math.round(performance.now() - startedAtMs) },
        "dependencies are installed",
      );
      return python;
    } catch (error) {
      if (!signal.aborted) logger.warn({ file: file.file }, `${file.file}: ${messageFromUnknown(error)}`);
      throw error;
    }
  };
  return new Installations(install, config.times);
}

function writeUnlabelled(logs: LogHub, source: string, line: WrittenLine): void {
  logs.write({ ...line, source, function: "", callId: "", traceId: "", principal: "" });
}
