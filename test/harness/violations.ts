import { readFile } from "node:fs/promises";
import { pathOfSeed } from "../../runtime/bus/credentials/directory.ts";
import { publicKeyOf } from "../../runtime/bus/credentials/login.ts";
import { busUsers } from "../../services/bus-users.ts";

/**
 * Throws if nats-server refused one of the suite's own services something: then the table of their access lacks it, or they do
 * what they should not. Third parties may be refused, which tests try.
 */
export async function refuseViolations(serverLog: string, credentials: string): Promise<void> {
  const log = await readFile(serverLog, "utf8").catch(() => ""); // it never started
  const lines = log.split("\n").filter((line) => line.includes(" Violation - "));
  const refused = [];
  for (const { name } of lines.length > 0 ? busUsers() : []) {
    const seed = await readFile(pathOfSeed(credentials, name), "utf8");
    const key = publicKeyOf({ name, seed: seed.trim() });
    for (const line of lines)
      if (line.includes(key)) refused.push(`${name}: ${line.replace(/^.* - (\w+ Violation)/, "$1")}`);
  }
  if (refused.length > 0)
    throw new Error(`the bus refused what services/access.ts does not name:\n${[...new Set(refused)].join("\n")}`);
}
