import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { StoredAgentSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { RunContextSchema } from "#gen/toolbus/internal/run/v1/run_context_pb.ts";
import type { StoredPin } from "#gen/toolbus/internal/tool/v1/stored_pin_pb.ts";
import type { StoredProvider } from "#gen/toolbus/provider/v1/provider_service_pb.ts";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { type CatalogTool, CatalogToolSchema } from "#gen/toolbus/tool/v1/tool_catalog_service_pb.ts";
import { Effect, ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { CallToolRequestSchema } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { BucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import { createMemoryBucket } from "#runtime/bus/testing/memory-bucket.ts";
import { createValidator } from "#runtime/schema/json-schema/validator.ts";
import { systemClock as clock } from "#runtime/time/clock.ts";
import { type Admitter, createAdmission } from "../../services/tool-router/calls/admission.ts";
import { Catalogue } from "../../services/tool-router/catalogue/catalogue.ts";
import { Pins } from "../../services/tool-router/catalogue/pins/pins.ts";
import { Contexts } from "../../services/tool-router/sessions/contexts/contexts.ts";
import { SessionChanges } from "../../services/tool-router/sessions/session-changes.ts";
import { sessionRecord } from "../../services/tool-router/sessions/session-record.ts";
import { Sessions } from "../../services/tool-router/sessions/sessions.ts";

/*
 * What deciding alone costs: the admission of the router as it is in production (session, context, resolve, policy, validate),
 * over a catalogue and sessions in memory. Each call is another agent's, of another tool, with arguments that are checked.
 */

export interface DecideSize {
  tools: number;
  agents: number;
}

const warmUp = 20_000;
const measured = 50_000;
const { signal } = new AbortController();

/** How long each decision took, in microseconds. */
export async function measureDecisions(size: DecideSize): Promise<number[]> {
  const admission = await openAdmission(size);
  const latenciesUs: number[] = [];
  for (let n = 0; n < warmUp + measured; n++) {
    const request = requestOf(n, size);
    const from = performance.now();
    const admitted = await admission.admit(request, signal);
    const us = (performance.now() - from) * 1_000;
    if (admitted.kind === "refused") throw new Error(`call ${n} is refused: ${admitted.answer.outputJson}`);
    if (admitted.kind === "switching") throw new Error(`the session of call ${n} is being switched`);
    if (n >= warmUp) latenciesUs.push(us);
  }
  return latenciesUs;
}

/** Of each three calls one names its tool by alias, and one brings a list of what its run allows. */
function requestOf(n: number, { tools, agents }: DecideSize) {
  const [agent, tool] = [(n * 37) % agents, (n * 7_919) % tools];
  const bounds = { turn: 1 + (n % 5), maxTurns: 10, call: 1 + (n % 20), maxToolCalls: 20, tokensLeft: 10_000n };
  const request = create(CallToolRequestSchema, {
    callId: randomUUID(),
    sessionId: sessionOf(agent),
    runId: `run_${n}`,
    name: n % 3 === 0 ? aliasOf(tool) : nameOf(tool),
    argumentsJson: JSON.stringify({
      id: n,
      note: "a note of some length",
      tags: ["one", "two"],
      place: { city: "Bern" },
    }),
    ...(n % 3 === 1 && { allowedTools: { names: [nameOf(0), nameOf(tool), aliasOf(0)] } }),
  });
  return { ...request, context: create(RunContextSchema, { bounds }) };
}

const nameOf = (tool: number) => `tool-${tool}`;
const aliasOf = (tool: number) => `alias-${tool}`;
const agentOf = (agent: number) => `agent-${agent}`;
const sessionOf = (agent: number) => `session-${agent}`;

async function openAdmission({ tools, agents }: DecideSize): Promise<Admitter> {
  const validator = createValidator();
  const catalogue = catalogueOf({ tools, agents });
  const bucket = createMemoryBucket<ReturnType<typeof sessionFrom>>();
  for (let agent = 0; agent < agents; agent++) await bucket.create(sessionOf(agent), sessionFrom(agent));
  const sessions = new Sessions({
    principals: { read: async () => new Map() },
    bucket,
    catalogue,
    clock,
    changes: new SessionChanges(),
  });
  const contexts = new Contexts({
    catalogue,
    find: () => undefined,
    clock,
    startupMs: 5_000,
    idleMs: 60_000,
    judge: async (tools) => ({ tools: [...tools], faults: new Map(), summary: "" }),
    onUnavailable: () => {},
    onAvailable: () => {},
  });
  const spaces = {
    activeSpace: async () => "",
    recordToolMessage: async () => {},
    deliverEvent: async () => {},
  };
  return createAdmission({ sessions, contexts, spaces, validator, audit: () => {}, clock });
}

function sessionFrom(agent: number) {
  return sessionRecord({
    id: sessionOf(agent),
    agent: agentOf(agent),
    principal: "local",
    state: SessionState.ACTIVE,
  });
}

const caughtUp = async () => {};

function catalogueOf({ tools, agents }: DecideSize): Catalogue {
  const agentView = new BucketView<ReturnType<typeof agentFrom>>();
  const toolView = new BucketView<CatalogTool>();
  for (let tool = 0; tool < tools; tool++) {
    toolView.apply({ kind: "set", key: nameOf(tool), revision: tool + 1, value: toolFrom(tool) });
  }
  for (let agent = 0; agent < agents; agent++) {
    agentView.apply({ kind: "set", key: agentOf(agent), revision: agent + 1, value: agentFrom(agent, tools) });
  }
  return new Catalogue({
    agents: { bucket: createMemoryBucket(), view: agentView, caughtUp },
    tools: { bucket: createMemoryBucket(), view: toolView, caughtUp },
    providers: { bucket: createMemoryBucket(), view: new BucketView<StoredProvider>(), caughtUp },
    ownProviders: [],
    grantees: { isGranted: () => true, require: async () => {} },
    pins: new Pins({
      pins: { bucket: createMemoryBucket(), view: new BucketView<StoredPin>() },
      audit: () => {},
      clock,
      onFault: () => {},
    }),
    caughtUp,
    ownSources: { names: () => new Set<string>() },
    known: async () => {},
  });
}

/** Each agent uses all tools, allows them by a pattern, and has an alias for each. */
function agentFrom(agent: number, tools: number) {
  const aliases = Object.fromEntries(Array.from({ length: tools }, (_, tool) => [aliasOf(tool), nameOf(tool)]));
  const use = Array.from({ length: tools }, (_, tool) => nameOf(tool));
  return create(StoredAgentSchema, {
    agent: { name: agentOf(agent), tools: { use, allowed: { names: ["tool-*"] }, aliases } },
  });
}

function toolFrom(tool: number) {
  const inputSchema = {
    type: "object",
    properties: {
      id: { type: "integer", minimum: -tool },
      note: { type: "string", maxLength: 1_000 },
      tags: { type: "array", items: { type: "string" }, maxItems: 10 },
      place: { type: "object", properties: { city: { enum: ["Bern", "Rome"] } }, required: ["city"] },
    },
    required: ["id", "note"],
    additionalProperties: false,
  };
  return create(CatalogToolSchema, {
    tool: {
      name: nameOf(tool),
      description: `Does number ${tool}.`,
      executionType: ExecutionType.INTERNAL,
      effect: Effect.PURE,
      inputSchemaJson: JSON.stringify(inputSchema),
    },
  });
}
