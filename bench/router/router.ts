/** The router as it is in production, under a name of its own. */
import { runService } from "#runtime/lifecycle/run-service.ts";
import { readConfig } from "../../services/tool-router/config.ts";
import { openService } from "../../services/tool-router/service.ts";
import { argumentOf } from "../measuring/peer-process.ts";

await runService({ name: argumentOf<string>(), readConfig, openService });
