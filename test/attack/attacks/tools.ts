// Tools that do what they like: what their processes find, reach and send.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { escapesFrom } from "../../../services/worker-pool/built-ins/testing/escapes.ts";
import { SECRET as FILE_SECRET } from "../../../services/worker-pool/built-ins/testing/file-tree.ts";
import { projectRoot } from "../../architecture/source-files.ts";
import { programFolder } from "../../harness/programs.ts";
import { gatewayAt } from "../../system/access/world.ts";
import { attemptsOn, reachedFrom, type Sought, startsOf } from "../../system/tools/hostile-programs.ts";
import { type Attack, type Ground, tryAll } from "../attack.ts";
import { callTool } from "../suite/call-tool.ts";

const kinds = ["@spy/search_worker", "@spies/search_mcp", "search_shell", "search_hosted"];

/** What a tool of that kind says when it runs the script. */
async function saidBy(ground: Ground, name: string, script: string): Promise<string> {
  const by = gatewayAt(ground.url, ground.keys.mallory);
  const args = name === "search_shell" ? { argv: ["sh", "-c", script] } : { script };
  return callTool(by, { sessionId: "mallorys", name, argumentsJson: JSON.stringify(args) });
}

/** What no tool was given. Its words are named by their places, so that a report shows none. */
function soughtIn({ secrets, directories, natsUrl, url }: Ground): Sought {
  return {
    words: Object.fromEntries(secrets.map((secret, index) => [secret, `secret ${index}`])),
    directories: [directories.suite],
    files: [directories.ofAnother],
    programs: [join(programFolder(), "package.json")],
    starts: startsOf(projectRoot),
    bus: natsUrl,
    gateway: url,
  };
}

/** Where nothing confines it, a tool has the rights of its user, as SECURITY.md says: this it has not even so. */
const isHeldAnyway = (line: string) => /^(environment|bus|gateway):/.test(line);

export const tools: readonly Attack[] = [
  ...kinds.map(
    (kind): Attack => ({
      name: `${kind} tries every door: other processes, files, the bus, the gateway`,
      requirement: "SEC-3",
      async play(ground) {
        const said = await saidBy(ground, kind, await attemptsOn(soughtIn(ground)));
        const { isConfined } = ground;
        const shown = ground.secrets.filter((secret) => said.includes(secret)).map(() => "a secret in its environment");
        const reached = reachedFrom(said).filter((line) => isConfined || isHeldAnyway(line));
        return { tries: 1, reached: [...reached, ...shown] };
      },
    }),
  ),
  {
    name: "ways out of the directories of file tools",
    requirement: "SEC-3",
    async play(ground, { isShort }) {
      const by = gatewayAt(ground.url, ground.keys.mallory);
      const { inside, files } = ground.directories;
      const outside = join(files, "outside");
      const before = await readFile(join(outside, "secret.txt"), "utf8");
      const ways = escapesFrom(() => ({ inside, outside }));
      const outcome = await tryAll(isShort ? ways.slice(0, 15) : ways, async ([what, path]) => {
        const read = { sessionId: "mallorys", name: "fs_read", argumentsJson: JSON.stringify({ path: path() }) };
        const said = await callTool(by, read).catch(messageFromUnknown);
        const write = {
          ...read,
          name: "fs_write",
          argumentsJson: JSON.stringify({ path: path(), content: "mallory" }),
        };
        if (!/^percent/.test(what)) await callTool(by, write).catch(() => undefined); // those are names like any other
        return said.includes(FILE_SECRET) || said.includes("root:") ? `${what}: ${said.slice(0, 200)}` : undefined;
      });
      const isChanged = (await readFile(join(outside, "secret.txt"), "utf8")) !== before;
      return isChanged ? { ...outcome, reached: [...outcome.reached, "a file outside was written"] } : outcome;
    },
  },
];
