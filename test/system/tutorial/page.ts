// A page of the tutorial as a reader follows it: the files that it shows, the commands that it says, and what they print.
//
//   ```json agents/greeter.json    a file that the folder of the page has
//   ```sh                          commands, one shell for each block; what it exports holds for those after it
//   ```sh background               a command that goes on in a terminal of its own
//   ```text                        what the commands before it print; `…` stands for anything, alone on a line for any lines
//
// Ids differ each time: RUN_ID and CALL_ID in a command stand for the last ones that were printed.

export type Block =
  | { readonly kind: "file"; readonly path: string; readonly text: string }
  | {
      readonly kind: "commands";
      readonly script: string;
      readonly goesOn: boolean;
      /** What they print; undefined where the page does not say. */
      readonly printed: string | undefined;
    };

/** The blocks of a page in their order. */
export function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  for (const { groups } of page.matchAll(/^```(?<language>\w+)(?: (?<info>\S+))?\n(?<text>.*?)^```/gms)) {
    const { language = "", info = "", text = "" } = groups ?? {};
    const last = blocks.at(-1);
    if (language === "sh")
      blocks.push({ kind: "commands", script: text, goesOn: info === "background", printed: undefined });
    else if (language !== "text") blocks.push({ kind: "file", path: info, text });
    else if (last?.kind === "commands") blocks[blocks.length - 1] = { ...last, printed: text };
  }
  return blocks;
}

/** Whether something was printed as a page says; how many spaces part columns makes no difference. */
export function isAsPrinted(expected: string, output: string): boolean {
  const lines = expected.trim().split("\n").map(patternOfLine);
  return new RegExp(`^${lines.join("")}$`, "u").test(`${plain(output).trim()}\n`);
}

/** The same of the beginning of what goes on being printed. */
export function hasBegunAsPrinted(expected: string, output: string): boolean {
  const lines = expected.trim().split("\n").map(patternOfLine);
  return new RegExp(`^${lines.join("")}`, "u").test(`${plain(output).trim()}\n`);
}

function patternOfLine(line: string): string {
  if (line.trim() === "…") return "(?:[^\\n]*\\n)*?";
  const parts = plain(line).split("…");
  return `${parts.map((part) => part.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")).join("[^\\n]*")}\\n`;
}

function plain(text: string): string {
  return text
    .split("\n")
    .filter((line) => !/^npm (warn|notice)/.test(line))
    .map((line) => line.replace(/ +/g, " ").trimEnd())
    .join("\n");
}

/** A script with the ids that were printed last in place of RUN_ID and CALL_ID. */
export function withIds(script: string, printed: string): string {
  const last = (pattern: RegExp) => [...printed.matchAll(pattern)].at(-1)?.[0];
  return script
    .replaceAll("RUN_ID", last(/\brun_[0-9a-z]{21}\b/g) ?? "RUN_ID")
    .replaceAll("CALL_ID", last(/\brun_[0-9a-z]{21}_\w+/g) ?? "CALL_ID");
}
