import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { projectRoot } from "../../architecture/source-files.ts";

interface Mount {
  readonly source: string;
  readonly target: string;
}

export interface ComposeService {
  readonly image?: string;
  readonly build?: string;
  readonly command: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly (string | object)[];
  readonly configs?: readonly Mount[];
  readonly secrets?: readonly Mount[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly stop_grace_period?: string;
  readonly deploy?: { replicas: number };
}

export interface ComposeFile {
  readonly name: string;
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly configs: Readonly<Record<string, { content?: string; file?: string }>>;
  readonly secrets: Readonly<Record<string, { file: string }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

/** A compose file as Compose reads it: anchors merged, variables of `env` filled in. */
export function readCompose(env: Readonly<Record<string, string>>, file = "docker-compose.yml"): ComposeFile {
  const text = readFileSync(join(projectRoot, file), "utf8");
  return filledIn(parse(text, { merge: true }), env) as ComposeFile;
}

function filledIn(value: unknown, env: Readonly<Record<string, string>>): unknown {
  if (typeof value === "string") return interpolated(value, env);
  if (Array.isArray(value)) return value.map((item) => filledIn(item, env));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filledIn(item, env)]));
}

/** `$$`, `${NAME}`, `${NAME:-otherwise}` and `${NAME:?what is wanted}`: what the file uses of Compose's language. */
function interpolated(text: string, env: Readonly<Record<string, string>>): string {
  return text.replace(/\$(?:\$|\{(\w+)(?::([-?])([^}]*))?\}|(\w*))/g, (all, name, sign, rest = "") => {
    if (all === "$$") return "$";
    if (name === undefined) throw new Error(`${JSON.stringify(all)} is no form of a variable that is known here`);
    const value = env[name];
    if (value) return value;
    if (sign === "-") return rest;
    throw new Error(`the compose file wants ${name}: ${rest || "it has no default"}`);
  });
}
