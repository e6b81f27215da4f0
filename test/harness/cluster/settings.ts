import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../../architecture/source-files.ts";

const page = readFileSync(join(projectRoot, "docs/settings.md"), "utf8");
const names = [...page.matchAll(/^\| `([A-Z_]+)(<NAME>)?` \|/gm)].map(([, name = "", family]) => ({ name, family }));

/** Whether docs/settings.md has the variable. */
export function isDocumented(variable: string): boolean {
  return names.some(({ name, family }) => variable === name || (family !== undefined && variable.startsWith(name)));
}
