import { mkdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { findBwrap } from "../../runtime/bus/nats-server/find/find-bwrap.ts";
import { findNatsServer } from "../../runtime/bus/nats-server/find/find-nats-server.ts";
import { findUv } from "../../runtime/bus/nats-server/find/find-uv.ts";
import { packPackage } from "../../tools/pack/pack.ts";
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
  if (process.env.npm_lifecycle_event === "test") process.env.TESTED_PACKAGE ??= await packageOfRun();
  process.env.NODE_COMPILE_CACHE ??= join(projectRoot, ".toolbus", "compile-cache");
}

/** Packs the package, lays it beside the packages of the sources, where an installed one lies, and gives its tarball there. */
async function packageOfRun(): Promise<string> {
  const tarball = await packPackage(join(projectRoot, ".toolbus", "tested", "toolbus"));
  const beside = join(projectRoot, "node_modules", ".cache", "toolbus-tested");
  await rm(beside, { recursive: true, force: true });
  await mkdir(dirname(beside), { recursive: true });
  await rename(dirname(tarball), beside);
  return join(beside, basename(tarball));
}
