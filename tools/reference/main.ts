import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { projectRoot } from "../gen/command.ts";
import { pages } from "./pages.ts";

for (const [path, write] of Object.entries(pages)) {
  await writeFile(join(projectRoot, path), await write(projectRoot));
  console.log(`wrote ${path}`);
}
