import { realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import type { HostedTool } from "../../../sdk/typescript/hosted.ts";

/** A function as a worker offers it, or a tool as its module describes it. No effect where none is said: a pin holds the tool to that. */
export interface ToolFunction extends Pick<HostedTool, "effect" | "timeoutMs"> {
  name: string;
  description: string;
  inputSchemaJson: string;
  outputSchemaJson?: string;
}

/** A Python file of the directory of workers, as reading it without running it found it. */
export type ToolFile = OfferedFile | RefusedFile;

export interface OfferedFile {
  kind: "offered";
  /** Its name in the directory. */
  file: string;
  path: string;
  /** Of its content, and of what it may import; another digest is another version. */
  digest: string;
  /** Of what it needs installed; versions of a file that need the same share an environment. */
  environment: string;
  functions: readonly ToolFunction[];
}

interface RefusedFile {
  kind: "refused";
  file: string;
  path: string;
  digest: string;
  reason: string;
  /** The reading itself failed, so it is worth another try. */
  isUnread?: boolean;
}

/** The source that a file is by itself: its name without the ending. */
export function sourceFromFile(file: string): string {
  return file.replace(/\.[^.]+$/, "");
}

/** Python files that are meant as tools; those that start with `_` or `.` are left to the tools that import them. */
export const isPythonFileName = (name: string) => /^[^_./][^/]*\.py$/.test(name);

/** Those of them whose names can be a source's. */
export const isToolFileName = (name: string) => /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\.py$/.test(name);

/** Files that can be hosted modules; those with another dot or a `_` before their name are left to the modules that import them. */
export const isModuleFileName = (name: string) => /^[A-Za-z0-9][A-Za-z0-9_-]*\.(ts|mts|js|mjs)$/.test(name);

export const LEADS_OUT = "it is a link that leads out of the directory";

/** Where a file of the directory lies; undefined for a link that leads out of it, or nowhere: what may run is what lies in it. */
export async function placeInside(directory: string, file: string): Promise<string | undefined> {
  const unlessLost = realpath(join(directory, file)).catch(() => undefined);
  const [root, place] = await Promise.all([realpath(directory), unlessLost]);
  return place?.startsWith(root + sep) ? place : undefined;
}
