import { openAuditTrail } from "#runtime/audit/trail.ts";
import { openBucketEviction } from "#runtime/bus/buckets/bucket-eviction.ts";
import { openServiceBus } from "#runtime/bus/credentials/service-bus.ts";
import type { OpenService, ServiceContext } from "#runtime/lifecycle/run-service.ts";
import { createStopping } from "#runtime/lifecycle/stopping.ts";
import { createResultStore } from "#runtime/results/store/store.ts";
import { openGrantees } from "#runtime/rpc/access/grantees.ts";
import { serveOnBus } from "#runtime/rpc/bus/server.ts";
import { systemClock } from "#runtime/time/clock.ts";
import { ACCESS } from "../access.ts";
import { wakeSession } from "../clients.ts";
import type { Config } from "./config.ts";
import { createInbox } from "./inbox/inbox.ts";
import { createDuePlans, openPlanClock } from "./memory/due-plans.ts";
import { createMemory } from "./memory/memory.ts";
import { createAnswers } from "./messages/answers.ts";
import { createMessages } from "./messages/messages.ts";
import { createSessions } from "./owners/sessions.ts";
import { createRoutes } from "./routes.ts";
import { createRunContext } from "./run-context.ts";
import { createMembership } from "./space/membership.ts";
import { createNotices } from "./space/notices.ts";
import { createSpaceAccess } from "./space/space-access.ts";
import { openDeliveries } from "./subscriptions/deliveries.ts";
import { createForgetSession } from "./subscriptions/forget-session.ts";
import { createNeighbours } from "./subscriptions/neighbours.ts";
import { openQuotas } from "./subscriptions/quota/quotas.ts";
import { seenMarks } from "./subscriptions/stream-inbox.ts";
import { createStores } from "./subscriptions.ts";

export async function openService(config: Config, context: ServiceContext): Promise<OpenService> {
  const { name, instance, logger, telemetry } = context;
  await using stack = new AsyncDisposableStack();
  const bus = stack.use(await openServiceBus(config, context, ACCESS.spaces.stores));
  const clock = systemClock;
  const onFault = (fault: string) => logger.warn(fault);
  const { log, inbox: store, ...stores } = createStores(bus);
  const { readSession, submit, findSpace } = createNeighbours(bus, telemetry);
  const sessions = createSessions(readSession);
  const { grantees } = stack.use(await openGrantees(bus, onFault));
  const creatorOf = async (spaceId: string) => (await stores.spaces.read(spaceId))?.value.principal ?? "";
  const quotas = stack.use(openQuotas(bus, { log, creatorOf, sessions, onFault }));
  const membership = createMembership({ ...stores, log, requireRoom: quotas.requireSpace, clock });
  const access = createSpaceAccess({ membership, sessions, grantees });
  const messages = createMessages({ log, clock });
  const wake = (sessionId: string) => wakeSession(bus, { sessionId });
  const inbox = createInbox({ store, clock, wake, isOverQuota: quotas.isOverQuota });
  const memory = createMemory(stores.memory, quotas.requireMemory);
  const parts = {
    ...{ membership, access, sessions, messages, log, inbox, memory, clock },
    audit: stack.use(openAuditTrail(bus, name, logger)).record,
    results: createResultStore(bus),
    forgetSession: createForgetSession(bus, membership),
    answers: createAnswers({ messages, membership, submit, findSpace }),
    runContext: createRunContext({ membership, inbox, memory }),
  };

  stack.use(await openDeliveries(bus, { deliver: createNotices({ membership, access, inbox, logger }), logger }));
  const look = createDuePlans({ records: stores.memory, inbox, clock });
  stack.use(openPlanClock({ records: stores.memory, look, clock, logger }));
  const fills = "marks of events that wait, or that were seen within the hour";
  stack.use(openBucketEviction(bus, { ...seenMarks(clock), fills, onFault }));
  const stopping = createStopping("watch again from the last sequence");
  stack.use(
    await serveOnBus(bus, {
      service: name,
      instance,
      logger,
      telemetry,
      routes: createRoutes({ ...parts, stopping: stopping.signal }),
    }),
  );
  stack.use(stopping);
  return stack.move();
}
