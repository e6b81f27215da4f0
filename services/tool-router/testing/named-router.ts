import { runService } from "#runtime/lifecycle/run-service.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";

await runService({ name: process.argv[2] ?? "tool-router", readConfig, openService });
