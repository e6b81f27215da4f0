import { existsSync } from "node:fs";
import { mkdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { until } from "#runtime/time/until.ts";
import type { SuiteService } from "../../../cli/suite/services.ts";
import type { Alive } from "./testing/service-probe.ts";

export type { Alive } from "./testing/service-probe.ts";

/** What is alive in each service, by instance, after garbage was collected there. */
export type AliveByInstance = ReadonlyMap<string, Alive>;

const probe = new URL("testing/service-probe.ts", import.meta.url);

/** Lets services tell what is alive in them. */
export async function openProbes(directory: string, maxHeapMegabytes: number) {
  await mkdir(directory, { recursive: true });
  return {
    env: {
      NODE_OPTIONS: `--max-old-space-size=${maxHeapMegabytes} --expose-gc --import=${probe.href}?${new URLSearchParams({ directory })}`,
    },
    /** Those that run; one that dies meanwhile is asked again in its next life. */
    async alive(services: readonly SuiteService[]): Promise<AliveByInstance> {
      const each = services.map(async (service) => [service.instance, await aliveIn(service, directory)] as const);
      return new Map(await Promise.all(each));
    },
  };
}

export type Probes = Awaited<ReturnType<typeof openProbes>>;

async function aliveIn(service: SuiteService, directory: string): Promise<Alive> {
  const what = `${service.instance} to tell what is alive in it`;
  let asked: number | undefined;
  const told = async () => {
    const { pid } = service;
    const path = join(directory, `${pid}.json`);
    if (pid !== undefined && pid !== asked) {
      if (!existsSync(join(directory, `${pid}.asks`))) return undefined;
      await rm(path, { force: true });
      process.kill(pid, "SIGUSR2");
      asked = pid;
    }
    const text = await readFile(path, "utf8").catch(() => ""); // not yet
    return text === "" ? undefined : (JSON.parse(text) as Alive);
  };
  return until(told, { timeoutMs: 60_000, intervalMs: 50, what });
}
