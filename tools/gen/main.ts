import { join } from "node:path";
import { projectRoot } from "./command.ts";
import { consoleIn, generateConsole } from "./console.ts";
import { generateFresh } from "./generate.ts";
import { readTree, writeTree } from "./tree.ts";

const startMs = performance.now();
try {
  const folder = join(projectRoot, "gen");
  const stubs = await generateFresh(projectRoot);
  const ofStubs = await writeTree(folder, new Map([...stubs, ...consoleIn(await readTree(folder))]));
  const fresh = new Map([...stubs, ...(await generateConsole())]);
  const ofConsole = await writeTree(folder, fresh);
  const missing = [...ofStubs.missing, ...ofConsole.missing];
  const changed = [...ofStubs.changed, ...ofConsole.changed];
  const leftOver = [...ofStubs.leftOver, ...ofConsole.leftOver];
  for (const path of missing) console.log(`  new      gen/${path}`);
  for (const path of changed) console.log(`  changed  gen/${path}`);
  for (const path of leftOver) console.log(`  removed  gen/${path}`);
  console.log(`gen/ holds ${fresh.size} generated files (${((performance.now() - startMs) / 1000).toFixed(1)} s)`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
