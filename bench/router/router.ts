/** The router as it is in production, under a name of its own. */
import { runService } from "#runtime/lifecycle/run-service.ts";
import { readConfig } from "../../services/tool-router/config.ts";
import { openService } from "../../services/tool-router/service.ts";

await runService({ name: process.argv[2] ?? "tool-router", readConfig, openService });
