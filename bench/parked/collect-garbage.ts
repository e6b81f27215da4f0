/**
 * Imported into each service that is measured: at SIGUSR2 it gives back all memory that nothing holds, and writes down how much
 * is left. That is what the service keeps; what V8 has not yet found worth collecting is no cost of a parked run.
 */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options: { type: string; execution: string; flavor: string }) => void;

process.on("SIGUSR2", () => {
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
  const directory = new URL(import.meta.url).searchParams.get("directory");
  if (directory === null) return;
  const path = join(directory, String(process.pid));
  writeFileSync(`${path}.part`, String(process.memoryUsage().heapUsed));
  renameSync(`${path}.part`, path); // whoever waits for it reads it whole
});
