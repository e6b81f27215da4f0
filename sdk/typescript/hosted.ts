// What a hosted module is: a TypeScript or JavaScript file in the directory of hosted modules, whose default export has
// this form. Import the types alone (`import type`), so that the file runs wherever it lies:
//
//   import type { HostedModule } from "../../sdk/typescript/hosted.ts";
//   export default { tools: [{ name: "now", run: () => new Date().toISOString() }] } satisfies HostedModule;

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type JsonObject = { [name: string]: Json };

export interface HostedModule {
  tools: readonly HostedTool[];
  /**
   * Runs once after the module is loaded, before its first call; what it throws keeps the module from being offered. A module that
   * has it is started with the service, one without it by its first call: what a module does by itself begins here.
   */
  initialize?(start: HostedStart): void | Promise<void>;
  /** Runs once when the module is left: the file changed or went, or the service stops. */
  shutdown?(): void | Promise<void>;
}

export interface HostedTool<Arguments extends object = JsonObject> {
  /** 1 to 64 letters, digits, `_` and `-`; no other hosted tool of the service has it. */
  name: string;
  /** For the model. */
  description?: string;
  /** JSON Schema of the arguments; without one any object is good. Arguments are validated before the tool is called. */
  inputSchema?: object;
  /** JSON Schema of the result. */
  outputSchema?: object;
  /** What a repetition may do to the world; the default is `at_most_once`. */
  effect?: "pure" | "idempotent" | "at_most_once";
  /** How long a call may take, unless the catalogue says otherwise. */
  timeoutMs?: number;
  /** Answers with a JSON value, or a promise of one; nothing is null. What it throws is the call's error. */
  run(args: Arguments, call: HostedCall): unknown;
}

/** One call. */
export interface HostedCall {
  readonly callId: string;
  /** Aborts when the call's time is over or its caller has left: stop then. */
  readonly signal: AbortSignal;
  /** What the source's entry, and the tool's entry in the catalogue, give. */
  readonly config: JsonObject;
  /** The secrets that the source's entry names, and no others. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly log: HostedLog;
  readonly registry: HostedRegistry;
  readonly model: HostedModel;
  progress(done: number, total?: number, message?: string): void;
}

export interface HostedStart {
  readonly log: HostedLog;
}

export interface HostedLog {
  debug(message: string, fields?: JsonObject): void;
  info(message: string, fields?: JsonObject): void;
  warn(message: string, fields?: JsonObject): void;
  error(message: string, fields?: JsonObject): void;
}

/** All tools of the agent that made the call, of every kind, under that agent's policy. Needs a call of a session. */
export interface HostedRegistry {
  list(): Promise<RegisteredTool[]>;
  /** By model name, alias or reference; undefined when the agent has no such tool. */
  get(name: string): Promise<RegisteredTool | undefined>;
  /** Rejects with the tool's error. */
  call(name: string, args?: JsonObject): Promise<Json>;
}

export interface RegisteredTool {
  name: string;
  reference: string;
  description: string;
  inputSchema: JsonObject;
  /** Whether policy lets it be called. */
  callable: boolean;
}

/** A model, by way of an agent that is configured with it. */
export interface HostedModel {
  /** One answer of the model, without tools. Rejects when there is none. */
  generate(request: GenerateRequest): Promise<{ text: string }>;
}

export interface GenerateRequest {
  prompt: string;
  /** In place of the agent's. */
  instructions?: string;
  /** The agent whose model answers; by default the one that made the call. */
  agent?: string;
}
