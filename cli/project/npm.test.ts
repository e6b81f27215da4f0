import { expect, test } from "vitest";
import { isNpm } from "./npm.ts";

test.each([
  ["npm exec toolbus up"],
  ["/usr/bin/node /usr/lib/node_modules/npm/bin/npx-cli.js toolbus up"],
  ["npm run up"],
  ["sh -c toolbus up"],
  ["/bin/bash -c toolbus up"],
  ["/usr/bin/node /opt/pnpm/bin/pnpm.cjs run up"],
])("PROD-3 a suite follows the end of the npm that started it: %s", (line) => expect(isNpm(line)).toBe(true));

test.each([
  ["node start.js"],
  ["/sbin/init"],
  ["bash"],
  ["/usr/bin/python3 supervise.py npm run up"],
  ["node npm-tools/start.js"],
  [""],
])("PROD-3 a suite outlives a program that npm started and that left it behind: %s", (line) =>
  expect(isNpm(line)).toBe(false),
);
