import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { projectRoot } from "../gen/command.ts";
import { referencePath, settingsReference } from "./reference.ts";

await writeFile(join(projectRoot, referencePath), await settingsReference(projectRoot));
console.log(`wrote ${referencePath}`);
