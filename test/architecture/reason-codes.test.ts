// The contract says of each reason with which codes it comes. Here that is compared with what the sources raise.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { projectRoot, type SourceFile, sourceFilesBelow } from "./source-files.ts";

const codes = [
  ...[
    "canceled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
  ],
  ...[
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
  ],
  ...["data_loss", "unauthenticated"],
];

/** Raised where code and reason do not stand beside each other: put together of parts, or passed on. */
const composed = [
  "CALLER_NOT_ATTACHED failed_precondition",
  "CALL_NOT_STARTED invalid_argument",
  "CALL_NOT_STARTED resource_exhausted",
  "CURRENCY_MISMATCH failed_precondition",
  "INTERNAL unknown",
  "MCP_LOGIN_NEEDED failed_precondition",
  "MODEL_PRICE_MISSING failed_precondition",
  "OUTCOME_UNKNOWN canceled",
  "OUTCOME_UNKNOWN deadline_exceeded",
  "PROVIDER_NOT_FOUND not_found",
  "REQUEST_MALFORMED unimplemented",
  "TOOL_NAME_TAKEN invalid_argument",
  "WORKER_CRASHED unavailable",
];

describe("the codes of the reasons", () => {
  const documented = documentedPairs();
  const raised = new Set(sourceFiles().flatMap(raisedPairs));

  it("are said of each reason", () => {
    const silent = documented.filter(({ codes }) => codes.length === 0).map(({ reason }) => reason);
    expect(documented.length).toBeGreaterThan(70);
    expect(silent).toEqual([]);
  });

  it("are those with which the sources raise it", () => {
    const said = documented.flatMap(({ reason, codes }) => codes.map((code) => `${reason} ${code}`));
    expect(raised.size).toBeGreaterThan(70);
    expect([...raised].filter((pair) => !said.includes(pair)).sort()).toEqual([]);
    expect(said.filter((pair) => !raised.has(pair)).sort()).toEqual([...composed].sort());
  });
});

function documentedPairs(): { reason: string; codes: string[] }[] {
  const proto = readFileSync(join(projectRoot, "proto/toolbus/error/v1/error.proto"), "utf8");
  return [...proto.matchAll(/((?: {2}\/\/ .*\n)+) {2}REASON_(\w+) = [1-9]/g)].map(([, comment = "", reason = ""]) => {
    const [, said = ""] = /Codes?: ([^.]*)\.\s*$/.exec(comment.replaceAll(/\n\s*\/\/ /g, " ")) ?? [];
    return { reason, codes: [...said.matchAll(/`(\w+)`/g)].map(([, code = ""]) => code) };
  });
}

function sourceFiles(): SourceFile[] {
  const files = ["runtime", "services", "cli"].flatMap((folder) => sourceFilesBelow(folder));
  return files.filter(({ isTest, path }) => !isTest && !/\.fixture\.ts$|\/testing\//.test(path));
}

/** `REASON code` of each error that is made with both. */
function raisedPairs({ text }: SourceFile): string[] {
  const calls = [...text.matchAll(/\b(?:refuse|refuseCall|connectError|new [A-Z]\w*)\(/g)];
  return calls.flatMap(({ index, 0: { length } }) => {
    const [first = "", ...rest] = argumentsAt(text, index + length);
    const options = rest.join(",");
    const reasons = namesIn(/\breason(?:: [^,}]*)?/.exec(options)?.[0] ?? "", text);
    return textsIn(first)
      .filter((code) => codes.includes(code))
      .flatMap((code) => reasons.map((reason) => `${reason} ${code}`));
  });
}

/** The names of reasons in an expression; a constant of the file stands for what it holds. */
function namesIn(expression: string, text: string): string[] {
  const named = textsIn(expression);
  if (named.length > 0) return named;
  const constant = /^reason(?:: (\w+))?$/.exec(expression.trim());
  if (constant === null) return [];
  const held = new RegExp(`const ${constant[1] ?? "reason"}\\b[^=]*= "([A-Z_]+)"`).exec(text)?.[1];
  return held === undefined ? [] : [held];
}

function textsIn(expression: string): string[] {
  return [...expression.matchAll(/"(\w+)"/g)].map(([, text = ""]) => text);
}

/** The arguments of a call, from behind its parenthesis to the one that closes it. */
function argumentsAt(text: string, start: number): string[] {
  const found = [""];
  let depth = 0;
  for (const [token] of text.slice(start).matchAll(/"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|\/\/[^\n]*|./gs)) {
    if (")]}".includes(token) && depth-- === 0) return found;
    if ("([{".includes(token)) depth += 1;
    if (token === "," && depth === 0) found.push("");
    else found[found.length - 1] += token;
  }
  return found;
}
