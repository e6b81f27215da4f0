import { readFile } from "node:fs/promises";
import { join, normalize } from "node:path/posix";

/** What a document says: `path` is its own, from the root of the tree. */
interface Document {
  readonly path: string;
  readonly text: string;
}

/** Links of documents that lead nowhere, and paths in backticks that are gone, as `path:line: fault`. */
export async function faultsInLinks(root: string, paths: readonly string[]): Promise<string[]> {
  const written = paths.filter((path) => path.endsWith(".md"));
  const texts = await Promise.all(written.map((path) => readFile(join(root, path), "utf8")));
  return faultsInDocuments(
    written.map((path, index) => ({ path, text: texts[index] ?? "" })),
    paths,
  );
}

export function faultsInDocuments(documents: readonly Document[], paths: readonly string[]): string[] {
  const places = new Set(paths.flatMap(withFoldersAbove));
  const anchors = new Map(documents.map(({ path, text }) => [path, anchorsOf(text)]));
  const tops = new Set(paths.filter((path) => path.includes("/")).map((path) => path.slice(0, path.indexOf("/"))));
  return documents.flatMap(({ path, text }) =>
    withoutCode(text)
      .split("\n")
      .flatMap((line, index) => {
        const faults = [...faultyLinks(path, line, { places, anchors }), ...faultyPaths(path, line, { places, tops })];
        return faults.map((fault) => `${path}:${index + 1}: ${fault}`);
      }),
  );
}

interface Targets {
  readonly places: ReadonlySet<string>;
  readonly anchors: ReadonlyMap<string, ReadonlySet<string>>;
}

function faultyLinks(path: string, line: string, { places, anchors }: Targets): string[] {
  const targets = [...line.matchAll(/\]\(([^()\s]+)\)/g)].map((match) => match[1] ?? "");
  return targets.flatMap((target) => {
    if (/^[a-z]+:/.test(target)) return []; // another site
    const [file = "", anchor] = target.split("#");
    const place = file === "" ? path : normalize(join(path, "..", file)).replace(/\/$/, "");
    if (!places.has(place)) return [`the link ${target} leads nowhere`];
    if (anchor === undefined || anchors.get(place)?.has(anchor)) return [];
    return [`the link ${target} names a heading that is not there`];
  });
}

interface Places {
  readonly places: ReadonlySet<string>;
  readonly tops: ReadonlySet<string>;
}

/**
 * `services/gateway/proxy.ts` in backticks is a path when it begins with a folder of the tree. It may also be written
 * from the folder of the document.
 */
function faultyPaths(path: string, line: string, { places, tops }: Places): string[] {
  const quoted = [...line.matchAll(/`([\w./-]+)`/g)].map((match) => (match[1] ?? "").replace(/\/$/, ""));
  const cited = quoted.filter((one) => one.includes("/") && tops.has(one.slice(0, one.indexOf("/"))));
  const isThere = (one: string) => places.has(one) || places.has(normalize(join(path, "..", one)));
  return cited.filter((one) => !isThere(one)).map((one) => `there is no ${one}`);
}

function withFoldersAbove(path: string): string[] {
  const parts = path.split("/");
  return parts.map((_, index) => parts.slice(0, index + 1).join("/"));
}

/** As GitHub makes them from headings. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = [...withoutCode(text).matchAll(/^#+ +(.+)$/gm)].map((match) => match[1] ?? "");
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** Without the content of blocks of code, whose lines stay in place. */
function withoutCode(text: string): string {
  return text.replace(/^(```|~~~).*?^\1/gms, (block) => block.replace(/[^\n]+/g, ""));
}
