import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const projectRoot = fileURLToPath(new URL("../../", import.meta.url));

export interface SourceFile {
  /** From the project's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
  /** What it imports: packages by name, own files by their path from the project's root. */
  readonly imports: readonly string[];
  /** A test, or a fixture that only tests use. */
  readonly isTest: boolean;
}

/** All TypeScript files below a folder of the project. */
export function sourceFilesBelow(folder: string): SourceFile[] {
  return readdirSync(join(projectRoot, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => sourceFileFrom(join(entry.parentPath, entry.name)));
}

function sourceFileFrom(absolute: string): SourceFile {
  const path = relative(projectRoot, absolute).replaceAll("\\", "/");
  const text = readFileSync(absolute, "utf8");
  const specifiers = [...text.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)"([^"]+)"/g)].map((match) => match[1] ?? "");
  return {
    path,
    text,
    imports: specifiers.map((specifier) => targetOf(specifier, path)),
    isTest: /\.(test|fixture)\.ts$|^test\/|\/testing\//.test(path),
  };
}

function targetOf(specifier: string, path: string): string {
  if (specifier.startsWith("#runtime/")) return specifier.slice(1);
  if (specifier.startsWith("#gen/jsonschema/")) return specifier.slice(1);
  if (specifier.startsWith("#gen/")) return `gen/es/${specifier.slice("#gen/".length)}`;
  if (!specifier.startsWith(".")) return specifier;
  return join(path, "..", specifier).replaceAll("\\", "/");
}

/** Folders directly below one of the project's. */
export function foldersIn(folder: string): string[] {
  return readdirSync(join(projectRoot, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
}
