import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type BenchResult, comparedResult } from "../measuring/result.ts";
import { openInstalledProject } from "./projects.ts";
import { openUp, residentMegabytes } from "./up.ts";

/*
 * How long does the command take to start the suite, or to say how it is used, and what does an idle suite hold? It is the command of
 * the package, installed from its tarball, in a project as `toolbus init` makes it; the baselines are Node alone, and the sources in
 * the same project. Everything is warm: what was compiled before is in the cache.
 */

export interface StartOptions {
  readonly rounds: number;
  readonly onProgress: (message: string) => void;
}

/** After the last service is ready, MCP servers and workers of the project still start. */
const settleMs = 5_000;

const LARGE = { agents: 100, tools: 2_000 };

const sources = fileURLToPath(new URL("../../cli/toolbus.ts", import.meta.url));

export async function* measureStart({ rounds, onProgress }: StartOptions): AsyncIterable<BenchResult> {
  onProgress("the package is built and installed");
  await using project = await openInstalledProject();
  const { program, folder } = project;

  onProgress("the help");
  const [helps, bare] = [[] as number[], [] as number[]];
  await processMs([program, "--help"]);
  for (let round = 0; round < rounds * 2; round++) {
    helps.push(await processMs([program, "--help"]));
    bare.push(await processMs(["--eval", "0"]));
  }
  yield result("help_ms", "ms", helps, bare);

  onProgress("the suite in one process, of the package and of the sources");
  const [packed, unpacked] = await measureUps(rounds, [
    [program, folder],
    [sources, folder],
  ]);
  yield result("up_ready_ms", "ms", packed.readyMs, unpacked.readyMs);
  yield result("idle_rss_mb", "MB", packed.residentMb, unpacked.residentMb);

  onProgress("the suite with a process for each service");
  const [isolated] = await measureUps(rounds, [[program, folder, ["--isolate"]]]);
  yield result("isolated_ready_ms", "ms", isolated.readyMs);
  yield result("isolated_rss_mb", "MB", isolated.residentMb);

  onProgress(`a project of ${LARGE.agents} agents and ${LARGE.tools} tools`);
  const large = await project.grown(LARGE.agents, LARGE.tools);
  const [grown, small] = await measureUps(rounds, [
    [program, large],
    [program, folder],
  ]);
  yield result("large_ready_ms", "ms", grown.readyMs, small.readyMs);
}

function result(metric: string, unit: string, values: readonly number[], baselines?: readonly number[]): BenchResult {
  return comparedResult({ bench: "start", metric, unit }, values, baselines);
}

interface Measured {
  readonly readyMs: number[];
  readonly residentMb: number[];
}

type Way = Parameters<typeof openUp>;

/** In turns, so that a slow minute is everybody's. The first start of each way fills the cache of compiled code and does not count. */
async function measureUps<const W extends readonly Way[]>(
  rounds: number,
  ways: W,
): Promise<{ [I in keyof W]: Measured }> {
  const measured = ways.map((): Measured => ({ readyMs: [], residentMb: [] }));
  for (let round = 0; round <= rounds; round++) {
    for (const [index, way] of ways.entries()) {
      await using up = await openUp(...way);
      if (round === 0) continue;
      measured[index]?.readyMs.push(up.readyMs);
      await setTimeout(settleMs);
      measured[index]?.residentMb.push(await residentMegabytes(up.pid));
    }
  }
  return measured as { [I in keyof W]: Measured };
}

/** How long a process of Node lives that ends by itself. */
async function processMs(args: readonly string[]): Promise<number> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, { stdio: "ignore" });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`node ${args.join(" ")} ended with ${code}`);
  return performance.now() - startedAt;
}
