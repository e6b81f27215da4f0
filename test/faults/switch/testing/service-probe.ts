// Loaded into each service of the fault run. At SIGUSR2 it collects garbage and writes what is alive, as JSON, under its
// process id into the directory of its own URL; that it can be asked, a file of its own says.

import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { queryObjects } from "node:v8";

export interface Alive {
  readonly heapBytes: number;
  readonly timers: number;
  /** Objects by class. */
  readonly objects: Readonly<Record<string, number>>;
}

type Class = abstract new (...parameters: never[]) => unknown;

/** What a service keeps for sessions; its modules are loaded by then. */
const classesByService: Readonly<Record<string, () => Promise<Record<string, unknown>>>> = {
  "tool-router": async () => ({
    ...(await import("../../../../services/tool-router/sessions/offers/scope-offers.ts")),
    ...(await import("../../../../services/tool-router/sessions/offers/offer-watch.ts")),
  }),
  "mcp-bridge": () => import("../../../../services/mcp-bridge/connection/connection.ts"),
};

async function collectGarbage(): Promise<void> {
  for (let round = 0; round < 3; round++) {
    globalThis.gc?.();
    await setImmediate(); // finalizers run in a turn of their own
  }
}

async function measure(directory: string): Promise<void> {
  const [service = ""] = process.argv[2]?.split("=") ?? []; // as `services-program.ts` is told
  const own = (await classesByService[service]?.()) ?? {};
  const classes = Object.entries<unknown>({ AbortSignal, ...own });
  const objects = Object.fromEntries(
    classes.flatMap(([name, one]) => (isClass(one) ? [[name, Number(queryObjects(one, { format: "count" }))]] : [])),
  );
  await collectGarbage();
  const timers = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
  const alive: Alive = { heapBytes: process.memoryUsage().heapUsed, timers, objects };
  const path = join(directory, `${process.pid}.json`);
  await writeFile(`${path}.part`, JSON.stringify(alive));
  await rename(`${path}.part`, path);
}

function isClass(value: unknown): value is Class {
  return typeof value === "function" && value.prototype !== undefined;
}

const directory = new URL(import.meta.url).searchParams.get("directory");
if (directory !== null) {
  process.on("SIGUSR2", () => void measure(directory));
  await writeFile(join(directory, `${process.pid}.asks`), ""); // the signal would end it before
}
