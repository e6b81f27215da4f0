import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "../../architecture/source-files.ts";

export const dockerfile = readFileSync(join(projectRoot, "Dockerfile"), "utf8");

/** What the image takes from the project, whatever the stage. */
export function copied(): string[] {
  const lines = dockerfile.matchAll(/^COPY (?!--from=)(.+) \S+$/gm);
  return [...lines].flatMap((match) => (match[1] ?? "").split(" "));
}

/** Whether a file or folder of the project is below /toolbus in the image, under its own path. */
export function isCopied(path: string): boolean {
  return copied().some((source) => path === source || path.startsWith(`${source}/`));
}
