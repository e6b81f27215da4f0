import { describe, expect, test } from "vitest";
import { faultsInText } from "./text-rules.ts";

describe("what the tree may not say", () => {
  test.each([
    ["docs/operations.md", "cd /home/ada/toolbus", "docs/operations.md:1: /home/ada is a path of one machine"],
    ["README.md", "see `/tmp/out.txt`", "README.md:1: /tmp/out.txt is a path of one machine"],
    ["cli/up.ts", 'const root = "/work/main";', "cli/up.ts:1: /work/main is a path of one machine"],
    [
      ".npmrc",
      "registry=https://registry.npmjs.org/",
      ".npmrc:1: registry.npmjs.org is the host of a package registry",
    ],
    ["package-lock.json", '\n  "resolved": "x"', 'package-lock.json:2: "resolved": is where a package came from'],
  ])("%s with %j is a fault", (path, text, fault) => {
    expect(faultsInText(path, text)).toEqual([fault]);
  });

  test.each([
    ["README.md", "https://example.com/work/item and services/work/README.md"],
    ["services/mcp-bridge/stdio.test.ts", 'const socket = "/tmp/peer.sock";'],
    ["docs/operations.md", "kept in `.toolbus/` and found on the PATH"],
  ])("%s with %j is none", (path, text) => {
    expect(faultsInText(path, text)).toEqual([]);
  });
});
