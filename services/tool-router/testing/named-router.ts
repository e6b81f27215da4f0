import { runService } from "#runtime/lifecycle/run-service.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";

await runService({ name: `tool-router.${process.argv[2]}`, readConfig, openService });
