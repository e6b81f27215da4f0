import { basename, dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { messageFromUnknown, refuse } from "#runtime/failure/failure.ts";
import { openChildProcess } from "#runtime/lifecycle/child-process/child-process.ts";
import type { Confinement } from "#runtime/lifecycle/child-process/confinement.ts";
import { textFromExit } from "#runtime/lifecycle/child-process/exit.ts";
import type { ToolFile, ToolFunction } from "./tool-file.ts";

/** Reads files without running them; one entry for each, in their order. Whatever a file contains, it never rejects. */
export type Inspect = (paths: readonly string[]) => Promise<ToolFile[]>;

interface InspectorOptions {
  uv: string;
  environment: Record<string, string>;
  confinement: Confinement | undefined;
}

const PROGRAM = fileURLToPath(new URL("../inspector", import.meta.url));
/** The first Python with `tomllib`. */
const PYTHON = ">=3.11";
const TIMEOUT_MS = 60_000;

/** Python's own parsers read the files, in a process of its own that has neither the tools' packages nor their folder. */
export function createInspect({ uv, environment, confinement }: InspectorOptions): Inspect {
  return async function inspect(paths): Promise<ToolFile[]> {
    if (paths.length === 0) return [];
    try {
      return await inspectTogether(paths);
    } catch (error) {
      if (paths.length > 1) return (await Promise.all(paths.map((path) => inspect([path])))).flat();
      const reason = `it could not be read: ${messageFromUnknown(error)}`;
      return paths.map((path) => ({ kind: "refused", file: basename(path), path, digest: "", reason, isUnread: true }));
    }
  };

  async function inspectTogether(paths: readonly string[]): Promise<ToolFile[]> {
    await using child = await openChildProcess({
      command: uv,
      args: ["run", "--quiet", "--no-project", "--no-config", "--python", PYTHON, "python", "-I", PROGRAM, ...paths],
      env: environment,
      cwd: dirname(PROGRAM),
      confinement: confinement && { ...confinement, visible: [...new Set(paths.map(dirname))] },
    });
    const timer = setTimeout(() => void child.kill(), TIMEOUT_MS);
    try {
      const found = await Array.fromAsync(child.lines(), (line, index) => toolFileFromLine(line, paths[index]!));
      if (found.length === paths.length) return found;
      refuse("internal", `Python ${textFromExit(await child.exited)}`, { reason: "INTERNAL" });
    } finally {
      clearTimeout(timer);
    }
  }
}

interface InspectedFile {
  file: string;
  digest: string;
  environment?: string;
  refused?: string;
  functions?: (Omit<ToolFunction, "inputSchemaJson"> & { inputSchema: object })[];
}

function toolFileFromLine(line: string, path: string): ToolFile {
  const found: InspectedFile = JSON.parse(line);
  const { file, digest, environment = "", refused, functions = [] } = found;
  if (refused !== undefined) return { kind: "refused", file, path, digest, reason: refused };
  const offered = functions.map(({ inputSchema, ...more }): ToolFunction => {
    return { ...more, inputSchemaJson: JSON.stringify(inputSchema) };
  });
  return { kind: "offered", file, path, digest, environment, functions: offered };
}
