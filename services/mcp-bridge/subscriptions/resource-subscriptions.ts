import { create } from "@bufbuild/protobuf";
import { type StoredSubscriptions, StoredSubscriptionsSchema } from "#gen/toolbus/internal/mcp/v1/subscriptions_pb.ts";
import { codecOf } from "#runtime/bus/buckets/bucket.ts";
import { createBucket } from "#runtime/bus/buckets/stored-bucket.ts";
import { openBucketView } from "#runtime/bus/buckets/views/bucket-view.ts";
import type { Bus } from "#runtime/bus/bus.ts";
import { refuse } from "#runtime/failure/failure.ts";
import type { Logger } from "#runtime/lifecycle/logger.ts";
import type { Subscriptions } from "../provider/session-resources.ts";

const PLACE = { bucket: "toolbus_mcp_subscriptions", prefix: "", codec: codecOf(StoredSubscriptionsSchema) } as const;
const MOST_OF_SESSION = 100;
const MOST_OF_PRINCIPAL = 1_000;

/** The subscriptions of all sessions, read before this resolves and followed from then on. */
export async function openResourceSubscriptions(bus: Bus, logger: Logger): Promise<Subscriptions & AsyncDisposable> {
  const bucket = createBucket(bus, PLACE);
  const followed = await openBucketView(bucket, (fault) => logger.error(fault));
  const { view } = followed;

  function requireRoom(resources: readonly unknown[], principal: string): void {
    if (resources.length >= MOST_OF_SESSION) refuseMore("session", MOST_OF_SESSION);
    const own = view.entries.filter(([, { value }]) => value.principal === principal);
    const count = own.reduce((sum, [, { value }]) => sum + value.resources.length, 0);
    if (count >= MOST_OF_PRINCIPAL) refuseMore("principal", MOST_OF_PRINCIPAL);
  }

  return {
    of: (sessionId) => view.get(sessionId)?.value.resources ?? [],
    changes: view.changes,
    async add({ sessionId, principal, source, uri }, signal) {
      const decide = (standing: StoredSubscriptions | undefined) => {
        const resources = standing?.resources ?? [];
        if (resources.some((one) => one.source === source && one.uri === uri)) return undefined;
        requireRoom(resources, principal);
        return create(StoredSubscriptionsSchema, { principal, resources: [...resources, { source, uri }] });
      };
      const { revision } = await bucket.update(sessionId, decide, signal);
      await view.reached(revision, signal);
    },
    async remove(sessionId, uri, signal) {
      const { value, revision } = await bucket.update(
        sessionId,
        (standing) => {
          const resources = standing?.resources.filter((one) => one.uri !== uri);
          if (standing === undefined || resources?.length === standing.resources.length) return undefined;
          return create(StoredSubscriptionsSchema, { ...standing, resources: resources ?? [] });
        },
        signal,
      );
      if (value !== undefined && value.resources.length === 0) await bucket.remove(sessionId, revision, signal);
    },
    async drop(sessionId) {
      if (view.get(sessionId) !== undefined) await bucket.remove(sessionId);
    },
    [Symbol.asyncDispose]: () => followed[Symbol.asyncDispose](),
  };
}

function refuseMore(share: string, limit: number): never {
  return refuse("resource_exhausted", `a ${share} has ${limit} subscriptions to resources at most: end some`, {
    reason: "SHARE_EXCEEDED",
    metadata: { share: "subscriptions", limit: String(limit) },
  });
}
