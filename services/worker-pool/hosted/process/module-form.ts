import { refuse } from "#runtime/failure/failure.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import type { HostedModule, HostedTool } from "../../../../sdk/typescript/hosted.ts";
import type { ToolFunction } from "../../files/tool-file.ts";

/** The function by which the program is asked for the module's `initialize`; no tool has such a name. */
export const INITIALIZE = "*initialize";

const EFFECTS: ReadonlySet<unknown> = new Set(["pure", "idempotent", "at_most_once"]);
const NAME = /^[a-zA-Z0-9_-]{1,64}$/;

const isTimeout = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) > 0 && Number(value) < 2 ** 32;
const FIELDS = new Set(["name", "description", "inputSchema", "outputSchema", "effect", "timeoutMs", "run"]);

/** The module that a file exports. Throws `failed_precondition`, which names the fault and its path. */
export function parseModule(exported: unknown): HostedModule {
  if (!isObject(exported)) fault("the default export must be an object with a list of tools");
  const { tools, initialize, shutdown } = exported;
  if (!Array.isArray(tools) || tools.length === 0) fault("tools: must be a list with at least one tool");
  for (const [name, hook] of Object.entries({ initialize, shutdown }))
    if (hook !== undefined && typeof hook !== "function") fault(`${name}: must be a function`);
  const names = new Set<unknown>();
  for (const [index, tool] of tools.entries()) {
    const wrong = faultOfTool(tool);
    if (wrong) fault(`tools[${index}]${wrong}`);
    const { name } = tool as HostedTool;
    if (names.has(name)) fault(`tools[${index}].name: ${JSON.stringify(name)} is there twice`);
    names.add(name);
  }
  return exported as unknown as HostedModule; // field by field, as far as it can be seen from outside
}

/** What a process says of its module's tools, which is not believed. */
export function toolsFrom(tools: unknown): ToolFunction[] {
  if (!Array.isArray(tools)) fault("its process describes no tools");
  const wrong = tools.map(faultOfDescription).find(Boolean);
  return wrong ? fault(`tools[]${wrong}`) : tools.map(describedTool);
}

function describedTool(tool: HostedTool): ToolFunction {
  const { name, description = "", inputSchema = { type: "object" }, outputSchema, effect, timeoutMs } = tool;
  return {
    name,
    description,
    inputSchemaJson: JSON.stringify(inputSchema),
    outputSchemaJson: outputSchema === undefined ? "" : JSON.stringify(outputSchema),
    ...(effect !== undefined && { effect }),
    ...(timeoutMs !== undefined && { timeoutMs }),
  };
}

function faultOfTool(tool: unknown): string {
  const wrong = faultOfDescription(tool);
  return wrong || typeof (tool as HostedTool).run === "function" ? wrong : ".run: must be a function";
}

function faultOfDescription(tool: unknown): string {
  if (!isObject(tool)) return ": must be an object";
  const unknown = Object.keys(tool).find((field) => !FIELDS.has(field));
  if (unknown !== undefined) return `.${unknown}: is no field of a tool; known are ${[...FIELDS].join(", ")}`;
  const { name, description, inputSchema, outputSchema, effect, timeoutMs } = tool;
  if (typeof name !== "string" || !NAME.test(name)) return ".name: must be 1 to 64 letters, digits, _ and -";
  if (description !== undefined && typeof description !== "string") return ".description: must be a text";
  if (inputSchema !== undefined && !isObject(inputSchema)) return ".inputSchema: must be a JSON Schema";
  if (outputSchema !== undefined && !isObject(outputSchema)) return ".outputSchema: must be a JSON Schema";
  if (effect !== undefined && !EFFECTS.has(effect)) return `.effect: must be one of ${[...EFFECTS].join(", ")}`;
  const isTimed = timeoutMs === undefined || isTimeout(timeoutMs);
  return isTimed ? "" : ".timeoutMs: must be a whole number of milliseconds";
}

function fault(words: string): never {
  return refuse("failed_precondition", words, { reason: "WORKER_INVALID" });
}
