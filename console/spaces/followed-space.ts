import type { Member, SpaceMessage } from "#gen/toolbus/space/v1/space_pb.ts";
import { SpaceService, type WatchSpaceResponse } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { placeAfterUpdate } from "#runtime/rpc/watching/log-update.ts";
import { clientOf } from "../suite/connection.ts";
import type { Followed } from "../suite/live.ts";

/** A space from its first event on: messages in their order, each as it is now, and who is in it. */
export interface FollowedSpace extends Followed<WatchSpaceResponse> {
  readonly messages: readonly SpaceMessage[];
  readonly members: ReadonlyMap<string, Member>;
  /** Events that are no longer stored. */
  readonly isCut: boolean;
}

export function followSpace(spaceId: string): FollowedSpace {
  const messages: SpaceMessage[] = [];
  const indices = new Map<string, number>();
  const members = new Map<string, Member>();
  let fromSequence = 0n;
  let isCut = false;

  function put(message: SpaceMessage): void {
    const index = indices.get(message.id);
    if (index === undefined) {
      indices.set(message.id, messages.length);
      messages.push(message);
    } else messages[index] = message;
  }

  return {
    messages,
    members,
    get isCut() {
      return isCut;
    },
    open: (signal) => clientOf(SpaceService).watchSpace({ spaceId, fromSequence }, { signal }),
    take({ update }) {
      fromSequence = placeAfterUpdate(update, fromSequence);
      if (update.case === "gap") isCut = true;
      if (update.case !== "event") return;
      const { event } = update.value;
      if (event.case === "memberJoined") members.set(event.value.id, event.value);
      else if (event.case === "memberLeft") members.delete(event.value.id);
      else if (event.case !== undefined) put(event.value);
    },
  };
}
