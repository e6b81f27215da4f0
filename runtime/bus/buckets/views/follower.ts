import { messageFromUnknown } from "../../../failure/failure.ts";
import { openBackground } from "../../../lifecycle/background.ts";
import type { Bucket, Change, FollowOptions } from "../bucket.ts";

export interface FollowerOptions<T> extends Pick<FollowOptions, "onResumed"> {
  onInterrupted?: (() => void) | undefined;
  /** What is told: all that stands and then each change, or the changes alone. */
  from: "start" | "now";
  onChange: (change: Change<T>) => void;
  /** Why nothing more will be told, or nothing for now. */
  onFault: (fault: string) => void;
}

export interface Follower extends AsyncDisposable {
  /** Of the last change when it was opened: what comes later is told. */
  readonly openedAt: number;
}

/** Follows a bucket until it is disposed; nothing is missed from when it resolves. */
export async function openFollower<T>(bucket: Bucket<T>, options: FollowerOptions<T>): Promise<Follower> {
  const { from, onChange, onFault, onInterrupted, onResumed } = options;
  const openedAt = await bucket.lastRevision();
  const fromRevision = from === "now" ? openedAt + 1 : undefined;
  let told = "";
  const hooks = {
    onInterrupted(cause?: unknown) {
      const fault = cause === undefined ? "" : `${bucket.name} is not followed for now: ${messageFromUnknown(cause)}`;
      if (fault !== told && fault !== "") onFault(fault);
      told = fault;
      onInterrupted?.();
    },
    onResumed() {
      told = "";
      onResumed?.();
    },
  };
  const following = openBackground(async (signal) => {
    try {
      for await (const change of bucket.follow({ fromRevision, signal, ...hooks })) onChange(change);
    } catch (error) {
      if (!signal.aborted) onFault(`${bucket.name} is no longer followed: ${messageFromUnknown(error)}`);
    }
  });
  return { openedAt, [Symbol.asyncDispose]: () => following[Symbol.asyncDispose]() };
}
