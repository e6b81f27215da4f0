import { join } from "node:path";
import { findBwrap } from "../../runtime/bus/nats-server/find/find-bwrap.ts";
import { findNatsServer } from "../../runtime/bus/nats-server/find/find-nats-server.ts";
import { findUv } from "../../runtime/bus/nats-server/find/find-uv.ts";
import { projectRoot } from "../architecture/source-files.ts";

/**
 * Runs once before all tests: finds, or fetches, the programs that tests run for real. Test processes inherit the
 * paths, so that each starts a server without looking again. What they compile is kept for the next one, and the next run.
 */
export default async function setup(): Promise<void> {
  process.env.TOOLBUS_UV ??= await findUv();
  process.env.TOOLBUS_NATS_SERVER ??= await findNatsServer();
  if (process.platform === "linux") process.env.TOOLBUS_BWRAP ??= await findBwrap();
  process.env.NODE_COMPILE_CACHE ??= join(projectRoot, ".toolbus", "compile-cache");
}
