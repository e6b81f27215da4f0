import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { projectRoot } from "../command.ts";
import { fetchProtovalidate } from "../protovalidate.ts";

export interface Workspace extends AsyncDisposable {
  readonly root: string;
  write(path: string, content: string | Uint8Array): Promise<void>;
  remove(path: string): Promise<void>;
}

/** An empty contract under the project's own rules: its buf configuration, and protovalidate's schema as the project fetched it. */
export async function openWorkspace(): Promise<Workspace> {
  await fetchProtovalidate(projectRoot);
  const root = await mkdtemp(join(tmpdir(), "toolbus-release-test-"));
  for (const file of ["buf.yaml", "buf.gen.yaml"]) await cp(join(projectRoot, file), join(root, file));
  await cp(join(projectRoot, ".gen", "protovalidate"), join(root, ".gen", "protovalidate"), { recursive: true });
  return {
    root,
    async write(path, content) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), content);
    },
    remove: (path) => rm(join(root, path), { recursive: true }),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

/** A file of the contract with a comment on its package, as buf's rules want it. */
export function protoFile(packageName: string, body: string, imports: readonly string[] = []): string {
  const lines = imports.map((path) => `import "${path}";\n`).join("");
  return `syntax = "proto3";\n\n// What is said.\npackage ${packageName};\n\n${lines}\n${body}`;
}

export function messageOf(name: string, fields: string): string {
  return `// A ${name.toLowerCase()}.\nmessage ${name} {\n${fields}}\n`;
}
