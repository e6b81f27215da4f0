#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { userCache } from "#runtime/config/places.ts";
import { clearEnvironment } from "#runtime/lifecycle/clear-environment.ts";
import { commandIn } from "./program/command-word.ts";

// Those that stay, with tools beside them: what they were started with must not be there to read.
if (["up", "dev", "serve"].includes(commandIn(process.argv.slice(2)) ?? "")) clearEnvironment();

// All that is imported from here on is compiled once. Where nothing can be written, it is compiled each time.
enableCompileCache(process.env.NODE_COMPILE_CACHE ?? join(userCache(), "compile-cache"));
await import("./program/program.ts");
