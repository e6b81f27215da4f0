import type {
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  JsonObject,
} from "@bufbuild/protobuf";
import type { Tool as McpTool } from "@modelcontextprotocol/server";
import forms from "#gen/jsonschema/suite-tools.json" with { type: "json" };
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { eventsUpTo, replayFromEvents } from "#runtime/content/replay.ts";
import { shortened } from "#runtime/content/shortened.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { clientOver } from "#runtime/rpc/bus/client-over.ts";
import { isObject } from "#runtime/schema/json-object.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { publicServices } from "../../../processes.ts";
import type { Health } from "../../health.ts";
import { type Effect, EXPOSED } from "./exposed.ts";
import { askMethod, type Methods, watchMethod } from "./methods.ts";

/** What the tools ask for, on behalf of who calls them. */
export interface Asked extends Methods {
  readonly health: Health;
}

/** A tool of the suite itself. What it gives is written as JSON. */
export interface SuiteTool {
  readonly listed: McpTool;
  readonly run: (asked: Asked, given: JsonObject) => Promise<unknown>;
}

interface Form {
  readonly description: string;
  readonly inputSchema: { readonly properties?: Readonly<Record<string, object>>; readonly [keyword: string]: unknown };
}

const FORMS = forms as unknown as Readonly<Record<string, Form>>;

/** Bounds of a watch: a client waits for one answer. */
const DEFAULT_UPDATES = 100;
const DEFAULT_SECONDS = 10;
const BOUNDS = {
  maxUpdates: {
    type: "integer",
    minimum: 1,
    maximum: 1_000,
    description: `Answer after so many updates; ${DEFAULT_UPDATES} unless given.`,
  },
  maxSeconds: {
    type: "number",
    minimum: 0,
    maximum: 50,
    description: `Answer after so long with what came by then; ${DEFAULT_SECONDS} unless given.`,
  },
} as const;
const ABOUT_BOUNDS =
  "Answers with a part of the watch, {updates, ended}. Where it has not ended, ask again from the sequence after the last event.";

const DEFAULT_TEXT = 2_000;

/** All of them, in the order of their names. */
export const SUITE_TOOLS: readonly SuiteTool[] = [
  ...Object.entries(EXPOSED).map(([name, effect]) => toolOfMethod(methodOf(name), effect)),
  replayRun(),
  checkHealth(),
].sort((one, other) => (one.listed.name < other.listed.name ? -1 : 1));

function methodOf(name: string): DescMethod {
  const found = publicServices.flatMap(({ methods }: DescService) => methods).find((method) => nameOf(method) === name);
  if (found === undefined) throw new Error(`no method of the contract is called ${name}`);
  return found;
}

function nameOf({ parent, name }: DescMethod): string {
  return `${parent.typeName}.${name}`;
}

function toolOfMethod(method: DescMethod, effect: Effect): SuiteTool {
  const { description, inputSchema } = FORMS[nameOf(method)] as Form;
  const name = method.name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, "_").toLowerCase();
  if (method.methodKind === "unary") {
    const unary = method as DescMethodUnary;
    return toolFrom({ name, description, inputSchema, effect }, (asked, given) => askMethod(asked, unary, given));
  }
  const properties = { ...inputSchema.properties, ...BOUNDS };
  const bounded = { name, description: `${description} ${ABOUT_BOUNDS}`, inputSchema: { ...inputSchema, properties } };
  return toolFrom({ ...bounded, effect }, (asked, { maxUpdates, maxSeconds, ...given }) =>
    watchMethod(asked, method as DescMethodServerStreaming, {
      given,
      maxUpdates: numberIn(BOUNDS.maxUpdates, maxUpdates) ?? DEFAULT_UPDATES,
      maxMs: (numberIn(BOUNDS.maxSeconds, maxSeconds) ?? DEFAULT_SECONDS) * 1_000,
    }),
  );
}

interface Described extends Form {
  readonly name: string;
  readonly effect: Effect;
}

function toolFrom({ name, description, inputSchema, effect }: Described, run: SuiteTool["run"]): SuiteTool {
  const annotations = { ...effect, openWorldHint: false };
  const listed = { name, description, inputSchema: { ...inputSchema, type: "object" }, annotations } as McpTool;
  return { listed, run };
}

/** The log of a run, folded to what a reader asks of it. */
function replayRun(): SuiteTool {
  const { inputSchema } = FORMS[nameOf(RunService.method.getRun)] as Form;
  const maxCharacters = {
    type: "integer",
    minimum: 100,
    maximum: 50_000,
    description: `Texts are cut to so many characters each; ${DEFAULT_TEXT} unless given.`,
  } as const;
  const described = {
    name: "replay_run",
    description:
      "Tells a run turn by turn, as far as it has come: what was said, each call with its arguments and result, how long it took, " +
      "and why the run ended. Each step has its sequence in the log, from which fork_run can go on.",
    inputSchema: { ...inputSchema, properties: { ...inputSchema.properties, maxCharacters } },
    effect: { readOnlyHint: true },
  };
  return toolFrom(described, async (asked, { runId, maxCharacters: given }) => {
    const client = clientOver(asked.transportOf(RunService), RunService);
    const id = String(runId ?? "");
    const last = (await client.getRun({ runId: id }, asked.options)).run?.lastSequence ?? 0;
    using ending = openEnding(asked.options.signal);
    const { signal } = ending;
    const updates = client.watchRun({ runId: id, fromSequence: 0n }, { ...asked.options, signal });
    const replay = replayFromEvents(await eventsUpTo(last, updates));
    ending.end(); // a stream that is left would go on
    return cut(replay, numberIn(maxCharacters, given) ?? DEFAULT_TEXT);
  });
}

function checkHealth(): SuiteTool {
  const described = {
    name: "check_health",
    description:
      "Tells of each service of the contract whether an instance of it answers. MCP servers: list_connections.",
    inputSchema: { type: "object", properties: {}, additionalProperties: false },
    effect: { readOnlyHint: true },
  };
  return toolFrom(described, async ({ health }) => {
    const services = [...(await health.list())].map(([name, isServing]) => [name || "gateway", isServing]);
    return { serving: Object.fromEntries(services) };
  });
}

function numberIn({ minimum, maximum, type }: { minimum: number; maximum: number; type: string }, given: unknown) {
  if (given === undefined) return undefined;
  const isRight = typeof given === "number" && (type === "number" || Number.isInteger(given));
  if (isRight && given >= minimum && given <= maximum) return given;
  const text = `${JSON.stringify(given)} is no ${type} from ${minimum} to ${maximum}`;
  return refuse("invalid_argument", text, { reason: "INVALID_REQUEST" });
}

/** Each text in so many characters at most. */
function cut(value: unknown, maxCharacters: number): unknown {
  if (typeof value === "string") return shortened(value, maxCharacters);
  if (Array.isArray(value)) return value.map((one) => cut(one, maxCharacters));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, cut(one, maxCharacters)]));
}
