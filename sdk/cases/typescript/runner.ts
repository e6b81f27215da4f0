// Plays the cases with the library for TypeScript: `npx node sdk/cases/typescript/runner.ts`, the suite's address in TOOLBUS_URL and a key in
// TOOLBUS_API_KEY.

import { readFileSync } from "node:fs";
import { createToolbus } from "toolbus";
import { playCases } from "./cases.ts";

const file = readFileSync(process.argv[2] ?? "sdk/cases/cases.yaml", "utf8");
if ((await playCases(file, createToolbus(), console.log)) > 0) process.exitCode = 1;
