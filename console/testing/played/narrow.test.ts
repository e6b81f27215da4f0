// Names that machines make, which are as long as the contract lets them be, on screens of every width (ORCH-12).

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { HealthState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import { left } from "../../../bench/console/played-suite.ts";
import { openPlayedStage, quietRuns } from "./stage.ts";

const long = "a_name_that_a_machine_has_made_of_many_others_and_of_a_number_17";
const createTime = timestampFromMs(Date.now());
const agent = { name: long, description: `${long}${long}` };
const call = { callId: long, agent: long, tool: `@${long}/${long}`, argumentsJson: `{"${long}":"${long}${long}"}` };
const member = { id: `session:${long}:${long}`, name: long };
const inRun = (sequence: number, event: object) => ({
  update: { case: "event" as const, value: { runId: "run_0", sequence, createTime, event: event as never } },
});
const inSpace = (sequence: bigint, event: object) => ({
  update: { case: "event" as const, value: { spaceId: long, sequence, event: event as never } },
});
const callNamed = (name: string, callId = name) => ({ item: { case: "functionCall", value: { callId, name } } });

async function openLongStage() {
  return await openPlayedStage((router) => {
    router.service(ToolCallService, {
      listToolCalls: () => ({
        calls: [{ ...call, createTime, state: ToolCallState.WAITING, executionType: ExecutionType.SPACE }],
      }),
    });
    router.service(RunService, {
      watchRuns: quietRuns,
      listRuns: () => ({ runs: [{ id: long, agent: long, inputText: long, state: RunState.IN_PROGRESS, createTime }] }),
      async *watchRun(_request, { signal }) {
        yield inRun(0, { case: "accepted", value: { agent: long, sessionId: long, principal: long } });
        yield inRun(1, { case: "claimed", value: {} });
        const items = [callNamed(`everything__${long}_one`), callNamed(`everything__${long}_two`)];
        yield inRun(2, { case: "turnCommitted", value: { turn: 1, items } });
        await left(signal);
      },
    });
    router.service(AgentService, {
      listAgents: () => ({ agents: [{ agent }] }),
      async *watchAgents(_request, { signal }) {
        yield { agents: [{ agent, warnings: [`${long}${long}`] }] };
        await left(signal);
      },
    });
    router.service(SessionService, {
      listSessions: () => ({ sessions: [{ id: long, agent: long, state: SessionState.ACTIVE, createTime }] }),
    });
    router.service(ToolService, {
      listTools: () => ({ tools: [{ modelName: long, reference: `@${long}/${long}`, available: true }] }),
      explainTool: () => ({ steps: [{ finding: long + long }], rule: long }),
      approveTools: () => ({ changes: [{ reference: `@${long}/${long}` }] }),
    });
    router.service(McpServerService, {
      async *watchConnections(_request, { signal }) {
        const connection = { id: "c", server: long, agent: long, reason: long + long, health: HealthState.UNHEALTHY };
        yield { connections: [connection] };
        await left(signal);
      },
    });
    router.service(SpaceService, {
      getSpace: () => ({ space: { id: long, title: long } }),
      listSpaces: () => ({ spaces: [{ id: long, title: long }] }),
      async *watchSpace(_request, { signal }) {
        yield inSpace(1n, { case: "memberJoined", value: member });
        const content = { case: "tool", value: { ...call, outputSchemaJson: `{"properties":{"${long}":{}}}` } };
        yield inSpace(2n, { case: "toolStarted", value: { id: "m", author: member, content } });
        await left(signal);
      },
    });
  });
}

const drawn = {
  overview: ".list a",
  runs: ".run-row",
  "runs/run_0": ".span",
  inbox: "article",
  [`tools/${long}?tool=${long}`]: ".list li",
  [`agents/${long}`]: ".session-row",
  [`spaces/${long}`]: "article",
};

it.each([380, 800, 1400])("fit a screen of %d pixels", async (width) => {
  await using stage = await openLongStage();
  const page = await stage.open("overview");
  await page.setViewportSize({ width, height: 900 });
  for (const [place, what] of Object.entries(drawn)) {
    await page.evaluate((hash) => {
      location.hash = hash;
    }, `#/${place}`);
    await page.locator(what).first().waitFor();
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(over, `${place} stands over the edge by so many pixels`).toBeLessThanOrEqual(0);
  }
});

it("of tools are read to their end on a phone, beside the time that each call takes", async () => {
  await using stage = await openLongStage();
  const page = await stage.open("runs/run_0");
  await page.setViewportSize({ width: 380, height: 900 });
  const label = page.locator(".span-label", { hasText: /_one$/ });
  await label.waitFor();
  expect((await label.boundingBox())?.width).toBeGreaterThan(230);
});
