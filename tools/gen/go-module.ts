import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "./command.ts";
import { goIsMissing } from "./versions.ts";

/** Where the files of a module lie, like `github.com/bufbuild/protovalidate@v1.2.2`, which Go fetches and verifies once. */
export async function downloadGoModule(module: string): Promise<string> {
  // Outside of any module, so that no go.mod of the project has a say.
  const neutralFolder = await mkdtemp(join(tmpdir(), "toolbus-gen-"));
  try {
    const answer = await runCommand("go", ["mod", "download", "-json", module], {
      cwd: neutralFolder,
      whenMissing: goIsMissing,
    });
    const description: unknown = JSON.parse(answer);
    if (description !== null && typeof description === "object" && "Dir" in description) return String(description.Dir);
    throw new Error(`go mod download did not say where ${module} is: ${answer}`);
  } finally {
    await rm(neutralFolder, { recursive: true, force: true });
  }
}
