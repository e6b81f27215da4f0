import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { projectRoot, runCommand } from "./command.ts";
import { generateJsonSchemas } from "./jsonschema/json-schemas.ts";
import { fetchProtovalidate } from "./protovalidate.ts";
import { generatePython } from "./python.ts";
import { readTree, type Tree } from "./tree.ts";
import { goIsMissing } from "./versions.ts";

/** Everything that belongs into gen/, generated from the proto/ of a workspace in a folder of its own; writes nothing there. */
export async function generateFresh(root: string): Promise<Tree> {
  await fetchProtovalidate(root);
  const workFolder = await mkdtemp(join(tmpdir(), "toolbus-gen-"));
  try {
    await runCommand("go", ["version"], { cwd: root, whenMissing: goIsMissing });
    const buf = runCommand("buf", ["generate", "--output", workFolder], { cwd: root });
    const generate = (name: string, cwd: string) =>
      runCommand("buf", ["generate", "--template", templateOf(name), "--output", workFolder], { cwd });
    const go = generate("go.gen.yaml", root);
    const grpc = generate("grpc.gen.yaml", projectRoot);
    await Promise.all([buf, go, grpc, generatePython(root, workFolder), generateJsonSchemas(root, workFolder)]);
    return await readTree(join(workFolder, "gen"));
  } finally {
    await rm(workFolder, { recursive: true, force: true });
  }
}

function templateOf(name: string): string {
  return join(projectRoot, "tools", "gen", name);
}
