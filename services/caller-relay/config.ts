import { readEnvironment } from "#runtime/config/environment.ts";
import { serviceConfigFromReader } from "#runtime/config/service-config.ts";

/** What each setting means is said where it is read. */
export type Config = ReturnType<typeof readConfig>;

const dayMs = 24 * 60 * 60_000;

export function readConfig(env: NodeJS.ProcessEnv) {
  const reader = readEnvironment(env);
  const config = {
    ...serviceConfigFromReader(reader),
    callerTimeoutMs: reader.milliseconds("TOOLBUS_CALLER_TIMEOUT", {
      meaning: "How long a caller may take for a call, unless its tool says otherwise.",
      default: 60_000,
      min: 1,
      max: dayMs,
    }),
    callerGraceMs: reader.milliseconds("TOOLBUS_CALLER_GRACE", {
      meaning: "How long requests wait for a caller that went away, unless the caller asks for another time.",
      default: 0,
      max: dayMs,
    }),
    callerMaxGraceMs: reader.milliseconds("TOOLBUS_CALLER_MAX_GRACE", {
      meaning: "The longest wait that a caller may ask for.",
      default: 5 * 60_000,
      max: dayMs,
    }),
  };
  reader.finish();
  return config;
}
