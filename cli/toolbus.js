#!/usr/bin/env node
import { fileURLToPath } from "node:url";

// Node strips no types below `node_modules`: whoever installed the package has them stripped by a hook, in every process.
const hook = new URL("packed/strip-types.js", import.meta.url);
if (fileURLToPath(hook).includes("node_modules")) {
  await import(hook.href);
  process.execArgv.push("--import", hook.href);
}
await import("./main.ts");
