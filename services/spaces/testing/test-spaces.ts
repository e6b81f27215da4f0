import { create } from "@bufbuild/protobuf";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { RunContextService } from "#gen/toolbus/internal/space/v1/run_context_service_pb.ts";
import { ToolMessageService } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";
import { ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { type InboxEvent, InboxEventSchema } from "#gen/toolbus/space/v1/inbox_pb.ts";
import { InboxService } from "#gen/toolbus/space/v1/inbox_service_pb.ts";
import { MemoryService } from "#gen/toolbus/space/v1/memory_service_pb.ts";
import type { SpaceEvent } from "#gen/toolbus/space/v1/space_pb.ts";
import { SpaceService, type WatchSpaceResponse } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { SubmitToolResultResponseSchema, ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { createLogger } from "#runtime/lifecycle/logger.ts";
import { refuseReused } from "#runtime/results/submission.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { callerNamed } from "#runtime/rpc/identity.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { clientFor } from "../../clients.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";

const logger = createLogger({ name: "spaces", level: "silent" });

export interface TestSpaces extends AsyncDisposable {
  readonly bus: TestBus;
  readonly clients: ReturnType<typeof clientsOn>;
  /** What the router was given, by call. */
  readonly submissions: ReadonlyMap<string, string>;
  /** In which spaces the router has calls wait, by call; unless told, in `asked`. */
  readonly spacesByCall: Map<string, string>;
  /** What the router knows, by session. */
  readonly sessions: Map<string, { agent: string; principal: string }>;
  /** A space, with agents in it whose sessions are named `<space>-<agent>`. */
  openSpace(spaceId: string, ...agents: string[]): Promise<string>;
}

/** A bus of its own with two instances of the service, and a fake of the router. */
export async function openTestSpaces(): Promise<TestSpaces> {
  await using stack = new AsyncDisposableStack();
  const submissions = new Map<string, string>();
  const sessions: TestSpaces["sessions"] = new Map();
  const spacesByCall: TestSpaces["spacesByCall"] = new Map();
  const bus = stack.use(await openTestBus());
  stack.use(await openFakeRouter(bus, { submissions, sessions, spacesByCall }));
  for (const instance of ["a", "b"]) stack.use(await openInstance(bus, instance));
  const clients = clientsOn(bus);
  const owned = stack.move();
  return {
    ...{ bus, clients, submissions, sessions, spacesByCall },
    async openSpace(spaceId, ...agents) {
      await clients.spaces.createSpace({ spaceId, title: `Space ${spaceId}` });
      for (const agent of agents)
        await clients.spaces.enterSpace({
          spaceId,
          member: { case: "agent", value: { sessionId: `${spaceId}-${agent}`, agent } },
        });
      return spaceId;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export function toolResult(owner: { sessionId: string; agent: string }, eventId: string): InboxEvent {
  const event = { case: "toolResult" as const, value: { callId: "call1", tool: "ask" } };
  return create(InboxEventSchema, {
    ...owner,
    eventId,
    event: { case: event.case, value: { $typeName: "toolbus.space.v1.InboxToolResult", ...event.value } },
  });
}

export async function collect(stream: AsyncIterable<WatchSpaceResponse>, count: number, meanwhile?: () => unknown) {
  const events: SpaceEvent[] = [];
  await meanwhile?.();
  for await (const { update } of stream) {
    if (update.case === "event") events.push(update.value);
    if (events.length === count) break;
  }
  return events;
}

export function clientsOn(bus: TestBus, principal?: string) {
  const asked = principal === undefined ? {} : { caller: () => callerNamed(principal) };
  const ofService = { caller: () => ({ ...(principal && { principal }), service: "test", isOperator: false }) };
  return {
    spaces: clientFor(bus, SpaceService, asked),
    inbox: clientFor(bus, InboxService, asked),
    memory: clientFor(bus, MemoryService, asked),
    delivery: clientFor(bus, InboxDeliveryService, ofService),
    contexts: clientFor(bus, RunContextService, ofService),
    toolMessages: clientFor(bus, ToolMessageService, ofService),
    provider: clientFor(bus, ToolProviderService, { ...ofService, process: "spaces" }),
  };
}

export async function openInstance(bus: TestBus, instance: string) {
  const { url, credentials } = bus.server;
  const config = readConfig({ NATS_URL: url, TOOLBUS_BUS_CREDENTIALS: credentials, TOOLBUS_INSTANCE: instance });
  const telemetry = await openTelemetry({ service: "spaces", instance });
  return openService(config, { name: "spaces", instance, logger, signal: new AbortController().signal, telemetry });
}

/** The router's part: whose session it is, and of the answers of a call the first. Answers that are no object do not fit. */
export async function openFakeRouter(
  bus: TestBus,
  known: Pick<TestSpaces, "sessions" | "spacesByCall"> & { submissions: Map<string, string> },
) {
  const { submissions, sessions, spacesByCall } = known;
  const submissionIds = new Map<string, string>();
  return serveOnBus(bus, {
    service: "tool-router",
    logger,
    routes: (router) => {
      router.service(ToolCallService, {
        getToolCall: ({ callId }) =>
          callId.startsWith("forgotten")
            ? refuseUnknown(callId)
            : { call: { callId, spaceId: spacesByCall.get(callId) ?? "asked" } },
        submitToolResult({ callId, submissionId, outcome }) {
          const { case: kind, value = "" } = outcome;
          const isRepeated = submissionId !== "" && submissionIds.get(callId) === submissionId;
          if (isRepeated && submissions.get(callId) === value) return create(SubmitToolResultResponseSchema, {});
          if (isRepeated) refuseReused(callId, submissionId);
          if (submissions.has(callId))
            refuse("failed_precondition", `call ${callId} is already resolved`, { reason: "CALL_ALREADY_RESOLVED" });
          if (callId.startsWith("expired"))
            refuse("failed_precondition", `call ${callId} has expired`, { reason: "CALL_EXPIRED" });
          if (kind === "resultJson" && callId.startsWith("strict") && !value.startsWith("{")) {
            refuse("invalid_argument", `the result of call ${callId} is refused: must be object`, {
              reason: "RESULT_INVALID",
            });
          }
          submissions.set(callId, value);
          submissionIds.set(callId, submissionId);
          return create(SubmitToolResultResponseSchema, { call: { callId, resolvedLate: callId.startsWith("late") } });
        },
      });
      router.service(SessionService, {
        getSession: ({ sessionId }) => ({
          session: {
            id: sessionId,
            ...(sessions.get(sessionId) ??
              refuse("not_found", `there is no session ${sessionId}`, { reason: "SESSION_NOT_FOUND" })),
          },
        }),
      });
    },
  });
}

function refuseUnknown(callId: string): never {
  return refuse("not_found", `there is no call ${callId}`, { reason: "CALL_NOT_FOUND" });
}
