// What is taken away in a copy of the tree has to be there: a file that was moved or rewritten would end a campaign only when it runs.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { projectRoot } from "../architecture/source-files.ts";
import { withouts as loop } from "./loop/plan/without.ts";
import { withouts as resume } from "./resume/resume.ts";
import { withouts as router } from "./router/without.ts";

it.each([...Object.entries(loop), ...Object.entries(resume), ...Object.entries(router)])(
  "the part %s can be taken away",
  (_, { edits }) => {
    for (const { file, from } of edits) {
      const text = readFileSync(join(projectRoot, file), "utf8");
      expect(text.split(from), `${file} holds once: ${from}`).toHaveLength(2);
    }
  },
);
