import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../../architecture/source-files.ts";

/** The documents of the tree, without what was fetched, generated or released. */
export function documentTexts(): { path: string; text: string }[] {
  const isLeftOut = (path: string) => /(^|\/)(node_modules|\.[^/]*)\//.test(path) || path === "proto/CHANGELOG.md";
  const tops = readdirSync(projectRoot, { withFileTypes: true }).filter(
    ({ name }) => !/^(node_modules$|\.)/.test(name),
  );
  const paths = tops.flatMap((top) => {
    if (!top.isDirectory()) return [top.name];
    return readdirSync(join(projectRoot, top.name), { recursive: true }).map((path) => `${top.name}/${path}`);
  });
  return paths
    .filter((path) => path.endsWith(".md") && !isLeftOut(path))
    .map((path) => ({ path, text: readFileSync(join(projectRoot, path), "utf8") }));
}
