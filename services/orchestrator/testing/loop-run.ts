/** A run in a log of its own, with a script for a model and a router that keeps the contract: processes claim and work on it. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { AgentSchema, LimitsSchema, ModelSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import type { RunAcceptedSchema, RunDelta } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { Role, RunOptionsSchema } from "#gen/toolbus/run/v1/run_pb.ts";
import { ToolOutputSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { ToolResult } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { textContent } from "#runtime/content/text.ts";
import { SELF } from "#runtime/rpc/identity.ts";
import { createInSpan } from "#runtime/telemetry/in-span.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { claimRun } from "../log/claim.ts";
import { createJournal, openJournal } from "../log/journal.ts";
import { runFromState } from "../log/state/view.ts";
import type { LoopContext } from "../loop/context.ts";
import type { DeliveredInbox } from "../loop/inbox/take-events.ts";
import { limitsFrom } from "../loop/limits/limits.ts";
import { runLoop } from "../loop/loop.ts";
import { createModelRow } from "../loop/requests/models.ts";
import type { ScriptTurn } from "../model/providers/scripted/script.ts";
import { createScriptedModel } from "../model/providers/scripted/scripted-model.ts";
import { submitOutputs } from "../runs/answer/answers.ts";
import { createFakeRouter, type FakeTool } from "./fakes/fake-router.ts";
import { createFakeToolMessages } from "./fakes/fake-tool-messages.ts";
import { createMemoryRunLog } from "./fakes/memory-log.ts";

const directory = mkdtempSync(join(tmpdir(), "toolbus-loop-"));
// Files of tests share it, as they may share a process.
process.once("exit", () => rmSync(directory, { recursive: true, force: true }));

export const tools: FakeTool[] = [
  { name: "double", aliases: ["twice"], answer: (args) => (args as { value: number }).value * 2 },
  {
    name: "fail",
    answer: () => {
      throw new Error("broken");
    },
  },
];

export interface Setting {
  turns: ScriptTurn[];
  options?: MessageInitShape<typeof RunOptionsSchema>;
  limits?: MessageInitShape<typeof LimitsSchema>;
  agent?: MessageInitShape<typeof AgentSchema>;
  accepted?: MessageInitShape<typeof RunAcceptedSchema>;
  tools?: FakeTool[];
  /** In place of the script. */
  model?: LanguageModelV4;
  /** What else the loop works with. */
  context?: Partial<LoopContext>;
}

export const emptyInbox: DeliveredInbox = {
  instructions: [],
  events: [],
  takenEventIds: new Set(),
  acknowledge: async () => {},
};

let scripts = 0;

export async function openRun(setting: Setting) {
  scripts += 1;
  const name = `script${scripts}`;
  writeFileSync(join(directory, `${name}.json`), JSON.stringify({ turns: setting.turns }));
  const asked: LanguageModelV4CallOptions[] = [];
  const answering = setting.model ?? createScriptedModel(directory, name);
  const model: LanguageModelV4 = {
    ...answering,
    doStream(call) {
      asked.push(call);
      return answering.doStream(call);
    },
  };
  const log = createMemoryRunLog();
  const router = createFakeRouter(setting.tools ?? tools);
  const deltas: RunDelta[] = [];
  const refused: string[] = [];
  const toolMessages = createFakeToolMessages();
  const given = new AbortController();
  const handover = new AbortController();
  const input = [{ item: { case: "message" as const, value: { role: Role.USER, content: textContent("go") } } }];
  const options = create(RunOptionsSchema, setting.options);
  const accepted = { sessionId: "s", agent: "helper", input, options, ...setting.accepted };
  await createJournal(log, "r", systemClock).append(() => ({ case: "accepted", value: accepted }));

  async function work(instance = "process", more: Partial<LoopContext> = {}) {
    const journal = await openJournal(log, "r", systemClock);
    const run = await claimRun(journal, instance);
    if (run === undefined) throw new Error("the run could not be claimed");
    const agent = create(AgentSchema, { name: "helper", instructions: "Help.", ...setting.agent });
    return runLoop(run, {
      agent,
      models: createModelRow({ language: model, config: agent.model ?? create(ModelSchema) }),
      limits: limitsFrom(agent.limits, create(LimitsSchema, setting.limits)),
      history: [],
      inbox: emptyInbox,
      router,
      clock: systemClock,
      publishDelta: (delta) => deltas.push(delta),
      setDeltas: () => {},
      inSpan: createInSpan(undefined),
      lendSlot: () => new DisposableStack(),
      maxTurnBytes: log.maxEventBytes("r"),
      checkpointMs: 60_000,
      toolMessages,
      onNotShown: (error) => toolMessages.faults.push(error),
      onRefused: ({ name }, why) => refused.push(`${name}: ${why}`),
      onRetry: () => {},
      onFailover: () => {},
      signal: given.signal,
      handover: handover.signal,
      ...setting.context,
      ...more,
    });
  }

  const view = async () => runFromState((await openJournal(log, "r", systemClock)).state!);
  const results = async () =>
    (await view()).items.flatMap(({ item }) => (item.case === "functionCallOutput" ? [item.value] : []));
  const answers = {
    log,
    wakes: { send: async () => {} },
    clock: systemClock,
    boundResult: async (result: ToolResult) => result,
  };
  const answer = (callId: string, value: string, kind: "resultJson" | "error" = "resultJson") =>
    submitOutputs(answers, "r", [create(ToolOutputSchema, { callId, outcome: { case: kind, value } })], {
      caller: SELF,
    });
  return {
    log,
    router,
    toolMessages,
    asked,
    deltas,
    refused,
    given,
    handover,
    answers,
    work,
    view,
    results,
    answer,
    events: () => log.events("r"),
  };
}

export function double(value: number, id?: string) {
  return { name: "double", arguments: { value }, ...(id !== undefined && { id }) };
}
