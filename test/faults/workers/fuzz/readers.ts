// The two readers of a tool file's metadata: uv, which installs and starts by them, and the inspector, by which the pool offers.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { projectRoot } from "../../../architecture/source-files.ts";

const execute = promisify(execFile);

/** `refused` holds the words; what was taken needs the packages, undefined where that did not come to light. */
export type Reading =
  | { readonly kind: "taken"; readonly packages: readonly string[] | undefined }
  | { readonly kind: "refused"; readonly words: string };

/** As uv says that it cannot read metadata; whatever else it says, it has read them. */
const UNREAD = /PEP 723 metadata|TOML parse error|closing tag|not valid UTF-8|invalid utf-8/i;

export interface ReaderOptions {
  readonly uv: string;
  /** A directory with a package of each name that the texts use. */
  readonly packages: string;
}

/** What uv would install, from a directory and without a network. */
export async function readByUv(path: string, { uv, packages }: ReaderOptions): Promise<Reading> {
  const source = ["--offline", "--no-index", "--find-links", packages, "--no-config"];
  const form = ["--quiet", "--no-header", "--no-annotate", "--no-hashes", "--color", "never"];
  try {
    const { stdout } = await execute(uv, ["export", "--script", path, ...source, ...form]);
    return { kind: "taken", packages: namesFrom(stdout.split("\n")) };
  } catch (error) {
    const { stderr } = error as { stderr?: string };
    if (stderr === undefined) throw error;
    return UNREAD.test(stderr) ? { kind: "refused", words: stderr.trim() } : { kind: "taken", packages: undefined };
  }
}

/** What the pool reads, by its own program. */
export async function readByInspector(paths: readonly string[], { uv }: ReaderOptions): Promise<Reading[]> {
  const program = join(projectRoot, "services", "worker-pool", "inspector");
  const python = ["run", "--quiet", "--no-project", "--no-config", "--python", ">=3.11", "python", "-I", program];
  const { stdout } = await execute(uv, [...python, ...paths], { maxBuffer: 2 ** 28 });
  return stdout.trim().split("\n").map(readingFromLine);
}

function readingFromLine(line: string): Reading {
  const { refused, dependencies }: { refused?: string; dependencies?: string[] } = JSON.parse(line);
  if (refused !== undefined) return { kind: "refused", words: refused };
  return { kind: "taken", packages: namesFrom(dependencies ?? []) };
}

/** The names alone, as packages are compared. */
function namesFrom(requirements: readonly string[]): string[] {
  const names = requirements.map((text) => /^[A-Za-z0-9._-]+/.exec(text.trim())?.[0].toLowerCase() ?? text);
  return [...new Set(names.filter((name) => name !== ""))].sort();
}

const WHEELS = `
import sys, zipfile
for name in sys.argv[2:]:
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(f"{sys.argv[1]}/{name}-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
`;

export async function writePackages({ uv, packages }: ReaderOptions, names: readonly string[]): Promise<void> {
  const python = ["run", "--quiet", "--no-project", "--no-config", "python", "-c", WHEELS];
  await execute(uv, [...python, packages, ...names]);
}
