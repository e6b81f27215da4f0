#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// All that is imported from here on is compiled once. Where nothing can be written, it is compiled each time.
enableCompileCache(fileURLToPath(new URL("../.toolbus/compile-cache", import.meta.url)));
await import("./program/program.ts");
