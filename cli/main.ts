#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { userCache } from "#runtime/config/places.ts";
import { clearEnvironment } from "#runtime/lifecycle/clear-environment.ts";

// Those that stay, with tools beside them: what they were started with must not be there to read.
if (process.argv.slice(2).some((word) => word === "up" || word === "serve")) clearEnvironment();

// All that is imported from here on is compiled once. Where nothing can be written, it is compiled each time.
enableCompileCache(process.env.NODE_COMPILE_CACHE ?? join(userCache(), "compile-cache"));
await import("./program/program.ts");
