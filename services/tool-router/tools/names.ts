import { hash } from "node:crypto";

/**
 * References and the names that models use.
 *
 * names-1  A model name is a function of the reference (and of the agent's own aliases) alone: adding sources, tools or callers
 *     changes no name.
 * names-2  Two references never share a name. A plain bare name holds no `__`; a plain `source__tool` has its first `__` right
 *     after the source and does not end like a hashed name; a hashed name ends in `__` and 16 hexadecimal digits.
 */

const FITTING = /^[a-zA-Z0-9_-]{1,64}$/;
const LIKE_HASHED = /__[0-9a-f]{16}$/;

export interface Reference {
  /** Absent for a bare name. */
  source?: string;
  tool: string;
}

/** `@source/tool`, or a bare name. */
export function parseReference(text: string): Reference {
  const [, source, tool] = /^@([^/]+)\/(.+)$/s.exec(text) ?? [];
  return source === undefined || tool === undefined ? { tool: text } : { source, tool };
}

export function referenceFrom(source: string, tool: string): string {
  return source === "" ? tool : `@${source}/${tool}`;
}

/** The name for the model. An agent's alias that is spelled like the plain name of another tool keeps that name for itself. */
export function modelNameFromReference(reference: string, aliases: ReadonlyMap<string, string> = new Map()): string {
  const plain = plainName(parseReference(reference));
  const isTaken = plain !== undefined && aliases.has(plain) && aliases.get(plain) !== reference;
  return plain === undefined || isTaken ? hashedName(reference) : plain;
}

function plainName({ source, tool }: Reference): string | undefined {
  if (source === undefined) return FITTING.test(tool) && !tool.includes("__") ? tool : undefined;
  const name = `${source}__${tool}`;
  const isReadable = !source.includes("__") && !source.endsWith("_") && !LIKE_HASHED.test(name);
  return isReadable && FITTING.test(name) ? name : undefined;
}

function hashedName(reference: string): string {
  const digest = hash("sha256", reference, "hex").slice(0, 16);
  const readable = reference.replace(/^@/, "").replace(/[^a-zA-Z0-9_-]/g, "_");
  return `${readable.slice(0, 46)}__${digest}`;
}

/** Whether a name may be that of a tool of a source, by its reference or as models call it. */
export function isOfSource(name: string, source: string): boolean {
  return name.startsWith(`@${source}/`) || name.startsWith(`${source.replace(/[^a-zA-Z0-9_-]/g, "_").slice(0, 46)}_`);
}

/** Whether a name fits a pattern, in which `*` stands for any characters: `@files/*`, `get_*`, and `*` for everything. */
export type NameMatcher = (reference: string) => boolean;

export function createNameMatcher(patterns: readonly string[]): NameMatcher {
  if (patterns.includes("*")) return () => true;
  const names = new Set(patterns.filter((pattern) => !pattern.includes("*")));
  const globs = patterns.filter((pattern) => pattern.includes("*")).map(globFromPattern);
  return (reference) => names.has(reference) || globs.some((fits) => fits(reference));
}

/** The star of a source does not reach into the tool's part, and a pattern without source reaches no source's tools. */
function globFromPattern(pattern: string): NameMatcher {
  const { source, tool } = parseReference(pattern);
  const fitsTool = createGlob(tool);
  if (source === undefined) return (reference) => !reference.startsWith("@") && fitsTool(reference);
  const fitsSource = createGlob(source);
  return (reference) => {
    const named = parseReference(reference);
    return named.source !== undefined && fitsSource(named.source) && fitsTool(named.tool);
  };
}

/** SEC-5: takes the first place for each part between two stars, and so no longer than the text is. A regular expression would try all places. */
function createGlob(pattern: string): (text: string) => boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return (text) => text === pattern;
  return (text) => {
    const end = text.length - last.length;
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false;
    let at = first.length;
    for (const part of rest) {
      at = text.indexOf(part, at);
      if (at < 0 || at + part.length > end) return false;
      at += part.length;
    }
    return true;
  };
}

/** Whether a pattern of `use` may fit a tool of the source. */
export function reachesInto(pattern: string, source: string): boolean {
  const { source: reached = "" } = parseReference(pattern);
  return pattern === "*" || createNameMatcher([reached])(source);
}
