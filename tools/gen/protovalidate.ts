import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { downloadGoModule } from "./go-module.ts";
import { versions } from "./versions.ts";

const schemaPath = join("buf", "validate", "validate.proto");

const underwayByRoot = new Map<string, Promise<void>>();

/**
 * Puts protovalidate's schema where buf.yaml expects its second module. It is published inside a Go module,
 * and is fetched from there: the tree holds no copy of it. A folder that has the pinned version is left alone;
 * callers at the same time share one fetch.
 */
export function fetchProtovalidate(root: string): Promise<void> {
  const underway = underwayByRoot.get(root) ?? fetchInto(root).finally(() => underwayByRoot.delete(root));
  underwayByRoot.set(root, underway);
  return underway;
}

async function fetchInto(root: string): Promise<void> {
  const folder = join(root, ".gen", "protovalidate");
  const stamp = join(folder, "version");
  if ((await textOf(stamp)) === versions.protovalidate) return;
  const moduleFolder = await downloadGoModule(`github.com/bufbuild/protovalidate@${versions.protovalidate}`);
  const schema = await readFile(join(moduleFolder, "proto", "protovalidate", schemaPath));
  await mkdir(join(folder, "buf", "validate"), { recursive: true });
  await replaceFile(join(folder, schemaPath), schema);
  await replaceFile(stamp, versions.protovalidate);
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Whole or not at all: two processes may generate side by side. */
async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, content);
  await rename(draft, path);
}
