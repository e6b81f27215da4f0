import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeFiles } from "./write-files.ts";

/**
 * The agent `counting`, which replays a script of many turns, in each of which it may call the INTERNAL tool `note`, and then says
 * `done`. Gives the variables by which a suite has it.
 */
export async function writeCountingAgent(
  stack: AsyncDisposableStack,
  turns: readonly object[],
): Promise<NodeJS.ProcessEnv> {
  const directory = await mkdtemp(join(tmpdir(), "toolbus-test-counting-"));
  stack.defer(() => rm(directory, { recursive: true, force: true }));
  await writeFiles(directory, {
    "agents/counting.json": {
      name: "counting",
      model: { provider: "scripted", model: "counting.json" },
      tools: { use: ["note"] },
      limits: { maxTurns: 50 },
    },
    "tools/note.json": { name: "note", executionType: "internal", effect: "pure" },
    "models/counting.json": { turns: [...turns, { text: "done" }] },
  });
  const [agents, tools, models] = ["agents", "tools", "models"].map((folder) => join(directory, folder));
  return { TOOLBUS_AGENTS: agents, TOOLBUS_TOOLS: tools, TOOLBUS_SCRIPTS: models };
}
