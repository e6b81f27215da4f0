import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { cp, mkdir, readFile, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { findBwrap } from "../../runtime/bus/nats-server/find/find-bwrap.ts";
import { findNatsServer } from "../../runtime/bus/nats-server/find/find-nats-server.ts";
import { findUv } from "../../runtime/bus/nats-server/find/find-uv.ts";
import { projectRoot } from "../architecture/source-files.ts";

/**
 * Runs once before all tests: finds, or fetches, the programs that tests run for real. Test processes inherit the
 * paths, so that each starts a server without looking again. What they compile is kept for the next one, and the next run. By `npm test`
 * they start the programs of the package, as users do: these need a third of the time in which those of the sources start.
 */
export default async function setup(): Promise<void> {
  process.env.TOOLBUS_UV ??= await findUv();
  process.env.TOOLBUS_NATS_SERVER ??= await findNatsServer();
  if (process.platform === "linux") process.env.TOOLBUS_BWRAP ??= await findBwrap();
  delete process.env.TESTED_PACKAGE; // of another run
  if (process.env.npm_lifecycle_event === "test") process.env.TESTED_PACKAGE = await packageOfRun();
  process.env.NODE_COMPILE_CACHE ??= join(projectRoot, ".toolbus", "compile-cache");
}

/**
 * Packs the package, lays it beside the packages of the sources, where an installed one lies, and gives its tarball there. Two runs side by
 * side have theirs each, or the same, if it is the same.
 */
async function packageOfRun(): Promise<string> {
  const { packPackage } = await import("../../tools/pack/pack.ts"); // few runs need all that it loads
  const packed = await packPackage(join(projectRoot, ".toolbus", `tested-${process.pid}`, "toolbus"));
  const hash = createHash("sha256")
    .update(await readFile(packed))
    .digest("hex")
    .slice(0, 16);
  const beside = join(projectRoot, "node_modules", ".cache", "toolbus-tested", hash);
  await mkdir(dirname(beside), { recursive: true });
  if (!existsSync(beside)) {
    await cp(dirname(packed), `${beside}-${process.pid}`, { recursive: true });
    await rename(`${beside}-${process.pid}`, beside); // whole, for whoever looks
  }
  await rm(dirname(packed), { recursive: true });
  return join(beside, basename(packed));
}
