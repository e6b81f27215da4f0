import { expect, test } from "vitest";
import { faultsInDocuments } from "./links.ts";

const other = { path: "docs/other.md", text: "# Other\n\n## The second, part\n" };
const paths = ["README.md", "docs/other.md", "docs/services/inner.md", "services/gateway/proxy.ts"];

const faultsOf = (text: string, path = "docs/page.md") => faultsInDocuments([{ path, text }, other], [...paths, path]);

test.each([
  ["a link to a file that is gone", "see [it](gone.md)", "docs/page.md:1: the link gone.md leads nowhere"],
  ["a link that leaves the tree", "[it](../../x.md)", "docs/page.md:1: the link ../../x.md leads nowhere"],
  [
    "a heading that is not there",
    "one\n[it](other.md#third)",
    "docs/page.md:2: the link other.md#third names a heading that is not there",
  ],
  [
    "a path in backticks that is gone",
    "in `services/gateway/gone.ts`",
    "docs/page.md:1: there is no services/gateway/gone.ts",
  ],
])("%s is a fault", (_, text, fault) => {
  expect(faultsOf(text)).toEqual([fault]);
});

test.each([
  [
    "a file, a folder, a heading, a page of the web",
    "[a](other.md) [b](../services/gateway/) [c](other.md#the-second-part) [d](https://a.b/c)",
  ],
  ["a heading of the same page", "# Here it is\n[it](#here-it-is)"],
  [
    "a path that is there, a folder, and what is no path of the tree",
    "`services/gateway/proxy.ts` `services/gateway` `services/inner.md` `a/b` `GET`",
  ],
  ["what stands in a block of code", "```md\n[it](gone.md) `services/gone.ts`\n```"],
])("%s is none", (_, text) => {
  expect(faultsOf(text)).toEqual([]);
});
