import { ToolCallService } from "#gen/toolbus/router/v1/tool_calls_pb.ts";
import { openServiceBus } from "#runtime/bus/service-bus.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import type { OpenService, ServiceContext } from "#runtime/lifecycle/run-service.ts";
import { clientFor } from "#runtime/rpc/client.ts";
import { clientInterceptors, serverInterceptors } from "#runtime/rpc/interceptors.ts";
import { serveOnNats } from "#runtime/rpc/nats/server.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { createAnswers, type SubmitAnswer } from "./answers.ts";
import type { Config } from "./config.ts";
import { createInbox } from "./inbox.ts";
import { createMembership } from "./membership.ts";
import { createMemory } from "./memory.ts";
import { createMessages } from "./messages.ts";
import { createNotices } from "./notices.ts";
import { createRoutes } from "./routes.ts";
import { createStores, openDeliveries } from "./subscriptions.ts";

const submitTimeoutMs = 15_000;

export async function openService(config: Config, context: ServiceContext): Promise<OpenService> {
  const { name, instance, logger, telemetry } = context;
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openServiceBus(config, context));
  const clock = systemClock;
  const { log, inbox: inboxStore, ...stores } = createStores(bus);
  const membership = createMembership({ ...stores, log, clock });
  const messages = createMessages({ log, clock });
  const inbox = createInbox({ store: inboxStore, clock });
  const memory = createMemory(stores.memory);

  const calls = clientFor(bus, ToolCallService, { interceptors: clientInterceptors({ telemetry }) });
  const submit: SubmitAnswer = async (answer) => {
    try {
      return (await calls.submitToolResult(answer, { timeoutMs: submitTimeoutMs })).call?.result;
    } catch (error) {
      throw failureFromConnectError(error);
    }
  };
  const answers = createAnswers({ messages, submit });

  stack.use(await openDeliveries(bus, { deliver: createNotices({ membership, inbox }).deliver, logger }));
  const stopping = new AbortController();
  stack.use(
    await serveOnNats(bus, {
      service: name,
      instance,
      logger,
      interceptors: serverInterceptors({ logger, telemetry }),
      routes: createRoutes({ membership, messages, answers, log, inbox, memory, stopping: stopping.signal }),
    }),
  );
  stack.defer(() => stopping.abort()); // watches would keep the server from draining
  return stack.move();
}
