import { readFile } from "node:fs/promises";
import { join } from "node:path";

interface TextRule {
  readonly pattern: RegExp;
  readonly what: string;
  readonly appliesTo: (path: string) => boolean;
}

const isProse = (path: string) => path.endsWith(".md");
const everywhere = () => true;
/** In pieces, so that this file keeps its own rule. */
const registryHosts = [
  ["registry", "npmjs", "org"],
  ["registry", "yarnpkg", "com"],
  ["pypi", "org"],
  ["pythonhosted", "org"],
  ["proxy", "golang", "org"],
  ["sum", "golang", "org"],
].map((words) => words.join("\\."));

const textRules: readonly TextRule[] = [
  { pattern: /(?<![\w.$}/-])\/(?:work|root)\/[\w.-]+/, what: "a path of one machine", appliesTo: everywhere },
  { pattern: /(?<![\w.$}/-])\/(?:tmp|home|Users)\/[\w.-]+/, what: "a path of one machine", appliesTo: isProse },
  {
    pattern: new RegExp(`\\b(?:${registryHosts.join("|")})\\b`),
    what: "the host of a package registry",
    appliesTo: everywhere,
  },
  {
    pattern:
      /\b(?:desk|dut(?:y|ies)|custody|departures|passengers?|shel(?:f|ves)|glance|liar|furniture|the thinking)\b(?!`)/i,
    what: "a word of our own: say it in the field's terms",
    appliesTo: isProse,
  },
  { pattern: /"resolved":/, what: "where a package came from", appliesTo: (path) => path === "package-lock.json" },
];

/** What the tree may not say, as `path:line: fault`, for the text files among the given paths. */
export async function faultsInTexts(root: string, paths: readonly string[]): Promise<string[]> {
  const faults = await Promise.all(paths.map((path) => faultsInFile(root, path)));
  return faults.flat();
}

async function faultsInFile(root: string, path: string): Promise<string[]> {
  const content = await readFile(join(root, path));
  if (content.includes(0)) return []; // not text
  return faultsInText(path, content.toString());
}

export function faultsInText(path: string, text: string): string[] {
  const rules = textRules.filter((rule) => rule.appliesTo(path));
  return text.split("\n").flatMap((line, index) =>
    rules.flatMap(({ pattern, what }) => {
      const found = pattern.exec(line);
      return found === null ? [] : [`${path}:${index + 1}: ${found[0]} is ${what}`];
    }),
  );
}
