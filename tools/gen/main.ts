import { join } from "node:path";
import { projectRoot } from "./command.ts";
import { generateFresh } from "./generate.ts";
import { writeTree } from "./tree.ts";

const startMs = performance.now();
try {
  const fresh = await generateFresh(projectRoot);
  const { missing, changed, leftOver } = await writeTree(join(projectRoot, "gen"), fresh);
  for (const path of missing) console.log(`  new      gen/${path}`);
  for (const path of changed) console.log(`  changed  gen/${path}`);
  for (const path of leftOver) console.log(`  removed  gen/${path}`);
  console.log(`gen/ holds ${fresh.size} generated files (${((performance.now() - startMs) / 1000).toFixed(1)} s)`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
