import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Duration, durationFromMs } from "@bufbuild/protobuf/wkt";
import type { CallerToolCancellation, CallerToolRequest } from "#gen/toolbus/caller/v1/caller_pb.ts";
import { CallerService, type WatchCallerRequestSchema } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { InboxDeliveryService } from "#gen/toolbus/internal/space/v1/inbox_delivery_service_pb.ts";
import { type ExecuteToolResponse, ToolProviderService } from "#gen/toolbus/provider/v1/tool_provider_service_pb.ts";
import { SessionState } from "#gen/toolbus/session/v1/session_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import type { InboxEvent } from "#gen/toolbus/space/v1/inbox_pb.ts";
import type { ToolProgress } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { ToolService } from "#gen/toolbus/tool/v1/tool_service_pb.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { refuse } from "#runtime/failure/failure.ts";
import { createLogger } from "#runtime/lifecycle/logger.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { callerNamed } from "#runtime/rpc/identity.ts";
import { openTelemetry } from "#runtime/telemetry/telemetry.ts";
import { type Clock, systemClock } from "#runtime/time/clock.ts";
import { openTestBus, type TestBus } from "../../../test/harness/bus.ts";
import { clientFor } from "../../clients.ts";
import { readConfig } from "../config.ts";
import { openService } from "../service.ts";

const logger = createLogger({ name: "caller-relay", level: "silent" });

/** Sessions belong to "owner"; closed ones are named so. */
export const owner = "owner";

export interface TestRelay extends AsyncDisposable {
  readonly bus: TestBus;
  /** What the inboxes of agents were told. */
  readonly inbox: Map<string, InboxEvent>;
  clientsOf(principal: string, bus?: Bus): ReturnType<typeof clientsOn>;
  /** One more, for the test to close. */
  openInstance(instance: string): Promise<AsyncDisposable>;
}

export interface TestRelayOptions {
  /** Opened with it, on its clock. */
  instances?: string[];
  clock?: Clock;
}

/** A real bus with fakes of the two services that the relay asks. */
export async function openTestRelay(options: TestRelayOptions = {}): Promise<TestRelay> {
  const { instances = [], clock = systemClock } = options;
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openTestBus());
  const inbox = new Map<string, InboxEvent>();
  const served = { logger };
  stack.use(
    await serveOnBus(bus, {
      ...served,
      service: "tool-router",
      routes: (router) => router.service(SessionService, fakeSessions).service(ToolService, fakeTools),
    }),
  );
  stack.use(
    await serveOnBus(bus, {
      ...served,
      service: "spaces",
      routes: (router) => router.service(InboxDeliveryService, fakeInbox(inbox)),
    }),
  );
  for (const instance of instances) stack.use(await openInstance(bus, instance, clock));
  const owned = stack.move();
  return {
    bus,
    inbox,
    clientsOf: (principal, by = bus) => clientsOn(by, principal),
    openInstance: (instance) => openInstance(bus, instance, clock),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function openInstance(bus: TestBus, instance: string, clock: Clock): Promise<AsyncDisposable> {
  const telemetry = await openTelemetry({ service: "caller-relay", instance });
  const context = { name: "caller-relay", instance, logger, signal: new AbortController().signal, telemetry };
  return openService(readConfig(environmentOf(bus, instance)), context, clock);
}

export function environmentOf(bus: TestBus, instance: string): NodeJS.ProcessEnv {
  const { url, credentials } = bus.server;
  return { NATS_URL: url, TOOLBUS_BUS_CREDENTIALS: credentials, TOOLBUS_INSTANCE: instance };
}

const closedSessions = new Set(["closed"]);

/** From now on. */
export const closeSession = (sessionId: string) => void closedSessions.add(sessionId);

const fakeSessions = {
  getSession({ sessionId }: { sessionId: string }) {
    if (sessionId === "unknown") refuse("not_found", `no session ${sessionId}`, { reason: "SESSION_NOT_FOUND" });
    const state = closedSessions.has(sessionId) ? SessionState.CLOSED : SessionState.ACTIVE;
    const principal = sessionId.startsWith("others-") ? "other" : owner;
    return { session: { id: sessionId, principal, state } };
  },
};

/** The agent has a tool of its own, with an alias. */
const fakeTools = {
  listTools: () => ({ tools: [{ modelName: "app_store", reference: "app_store", aliases: ["app_shop"] }] }),
};

function fakeInbox(events: Map<string, InboxEvent>) {
  return {
    deliverEvent({ event }: { event?: InboxEvent | undefined }) {
      if (!event) refuse("invalid_argument", "no event", { reason: "INVALID_REQUEST" });
      const duplicate = events.has(event.eventId);
      if (!duplicate) events.set(event.eventId, event);
      return { duplicate };
    },
  };
}

function clientsOn(bus: Bus, principal: string) {
  const caller = () => callerNamed(principal);
  const relay = clientFor(bus, CallerService, { caller });
  const ofService = () => ({ ...caller(), service: "test" });
  const provider = clientFor(bus, ToolProviderService, { caller: ofService, process: "caller-relay" });
  const declare = (sessionId: string, ...tools: { name: string; description?: string; timeout?: Duration }[]) =>
    relay.declareTools({ sessionId, declaration: { callerId: "app", tools } });
  return {
    relay,
    provider,
    declare,
    attach: (sessionId: string, reconnectGraceMs = 0, streamId = "") =>
      attach(relay, { sessionId, streamId, reconnectGrace: durationFromMs(reconnectGraceMs) }),
    /** A caller with two tools, one of them in a hurry. */
    async openCaller(sessionId: string, reconnectGraceMs = 0, streamId = ""): Promise<TestCaller> {
      await declare(sessionId, { name: "ask" }, { name: "quick", timeout: durationFromMs(500) });
      return attach(relay, { sessionId, streamId, reconnectGrace: durationFromMs(reconnectGraceMs) });
    },
    answer: (sessionId: string, requestId: string, value: unknown) =>
      relay.respond({ sessionId, requestId, outcome: { case: "resultJson", value: JSON.stringify(value) } }),
    /** What the agent gets. */
    call: (
      sessionId: string,
      tool: string,
      callId: string,
      value: object = {},
      signal?: AbortSignal,
      resumed = false,
    ) =>
      resultOf(
        provider.executeTool(
          { callId, tool, scope: { sessionId, agent: "helper" }, argumentsJson: JSON.stringify(value), resumed },
          signal ? { signal } : {},
        ),
      ),
    /** The same, of somebody who is told of progress. */
    callTold: (sessionId: string, tool: string, callId: string, onProgress: (progress: ToolProgress) => void) =>
      resultOf(provider.executeTool({ callId, tool, scope: { sessionId, agent: "helper" } }), onProgress),
  };
}

async function resultOf(
  events: AsyncIterable<ExecuteToolResponse>,
  onProgress: (progress: ToolProgress) => void = () => {},
) {
  for await (const { event } of events) {
    if (event.case === "progress") onProgress(event.value);
    if (event.case === "result") return { isError: event.value.isError, value: JSON.parse(event.value.outputJson) };
  }
  throw new Error("the call ended without a result");
}

export type Clients = ReturnType<typeof clientsOn>;

/** A caller whose stream is attached. */
export interface TestCaller {
  /** The next request on its stream. */
  next(): Promise<CallerToolRequest>;
  /** What it is told next: that a request is canceled. */
  canceled(): Promise<CallerToolCancellation>;
  /** The failure that ends its stream. */
  failure(): Promise<unknown>;
  close(): void;
}

async function attach(
  relay: Clients["relay"],
  request: MessageInitShape<typeof WatchCallerRequestSchema>,
): Promise<TestCaller> {
  const closing = new AbortController();
  const stream = relay.watchCaller(request, { signal: closing.signal });
  const iterator = stream[Symbol.asyncIterator]();
  const first = await iterator.next();
  if (first.value?.event.case !== "attached") throw new Error("the stream did not begin with `attached`");
  return {
    async next() {
      const { value } = await iterator.next();
      if (value?.event.case !== "request") throw new Error("the stream ended");
      return value.event.value;
    },
    async canceled() {
      const { value } = await iterator.next();
      if (value?.event.case !== "canceled") throw new Error(`${value?.event.case ?? "the end"} came`);
      return value.event.value;
    },
    failure: () =>
      iterator.next().then(
        () => "something else came",
        (error: unknown) => error,
      ),
    close: () => closing.abort(),
  };
}
