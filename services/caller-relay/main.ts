import { runService } from "#runtime/lifecycle/run-service.ts";
import { readConfig } from "./config.ts";
import { openService } from "./service.ts";

export const service = { name: "caller-relay", readConfig, openService };
if (import.meta.main) await runService(service);
