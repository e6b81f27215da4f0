import { refuse } from "#runtime/failure/failure.ts";

/** The secrets that this service holds, given out by name. */
export type Secrets = ReturnType<typeof createSecrets>;

export function createSecrets(values: ReadonlyMap<string, string>, variablePrefix: string) {
  /** Why they cannot be given; empty when they can. */
  function faultOf(source: string, names: readonly string[]): string {
    const missing = names.filter((name) => !values.has(name));
    if (missing.length === 0) return "";
    const variables = missing.map((name) => variablePrefix + name).join(", ");
    return `source "${source}" names secrets that are not set: give the worker pool ${variables}`;
  }

  return {
    faultOf,
    /** The named ones and no others, as JSON text. Throws `failed_precondition`, which names the variable of a missing one. */
    jsonOf(source: string, names: readonly string[]): string {
      const fault = faultOf(source, names);
      if (fault) refuse("failed_precondition", fault, { reason: "SECRET_NOT_FOUND" });
      return JSON.stringify(Object.fromEntries(names.map((name) => [name, values.get(name)])));
    },
  };
}
