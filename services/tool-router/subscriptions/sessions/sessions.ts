import type { Bucket } from "#runtime/bus/buckets/bucket.ts";
import { openFollower } from "#runtime/bus/buckets/views/follower.ts";
import { messageFromUnknown } from "#runtime/failure/failure.ts";
import { openBackground } from "#runtime/lifecycle/background.ts";
import { isSettled } from "../../sessions/failures.ts";
import type { SessionChanges } from "../../sessions/session-changes.ts";
import type { SessionRecord } from "../../sessions/session-record.ts";

/** Publishes the changes of sessions from now on. Also lists, in the background, the sessions that are being switched. */
export async function followSessions(
  bucket: Bucket<SessionRecord>,
  changes: SessionChanges,
  onFault: (fault: string) => void,
): Promise<AsyncDisposable> {
  await using stack = new AsyncDisposableStack();
  const published = new Set<string>();
  let hasListed = false;
  const follower = stack.use(
    await openFollower(bucket, {
      from: "now",
      onFault,
      onChange(change) {
        if (change.kind !== "set") return;
        if (!hasListed) published.add(change.key);
        changes.publish(change);
      },
    }),
  );
  stack.use(
    openBackground(async (signal) => {
      try {
        for await (const session of bucket.list({ signal, where: (value) => !isSettled(value) })) {
          if (session.revision <= follower.openedAt && !published.has(session.key)) changes.publish(session);
        }
      } catch (error) {
        if (!signal.aborted)
          onFault(`the sessions that are being switched are not listed: ${messageFromUnknown(error)}`);
      }
      hasListed = true;
      published.clear();
    }),
  );
  return stack.move();
}
