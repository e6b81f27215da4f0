import type { Member, SpaceMessage } from "#gen/toolbus/space/v1/space_pb.ts";
import { SpaceService, type WatchSpaceResponse } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { placeAfterUpdate } from "#runtime/rpc/watching/log-update.ts";
import { clientOf } from "../suite/connection.ts";
import type { Followed } from "../suite/live.ts";

/** Messages of a page. */
const pageSize = 100;

/** How many are shown at most before earlier ones are asked for: a space may be followed for days. */
const shownMessages = 300;

/** A space from its latest messages on, each as it is now, and who is in it. */
export interface FollowedSpace extends Followed<WatchSpaceResponse> {
  /** The latest, in their order. */
  readonly messages: readonly SpaceMessage[];
  readonly members: ReadonlyMap<string, Member>;
  /** How many came before them. */
  readonly earlierCount: number;
  /** Asks for the page before. */
  earlier(): Promise<void>;
}

export function followSpace(spaceId: string): FollowedSpace {
  let messages = new Map<string, SpaceMessage>();
  const members = new Map<string, Member>();
  let fromSequence: bigint | undefined;
  let firstSequence = 0n;
  let nextPage = "";
  let unlistedCount = 0;
  let mostShown = shownMessages;
  const service = clientOf(SpaceService);

  /** Puts a page in front of what is held; the latest one in place of it. */
  async function list(pageToken: string, signal?: AbortSignal): Promise<void> {
    const page = await service.listMessages({ spaceId, pageSize, pageToken }, signal ? { signal } : {});
    const listed = page.messages.reverse().map((message) => [message.id, message] as const);
    messages = new Map([...listed, ...(pageToken === "" ? [] : messages)]);
    nextPage = page.nextPageToken;
    firstSequence = nextPage === "" ? 0n : (page.messages[0]?.sequence ?? firstSequence);
    unlistedCount = nextPage === "" ? 0 : page.totalSize - messages.size;
  }

  async function begin(signal: AbortSignal): Promise<void> {
    const { space } = await service.getSpace({ spaceId }, { signal });
    members.clear();
    for (const member of space?.members ?? []) members.set(member.id, member);
    await list("", signal);
  }

  return {
    members,
    get messages() {
      return [...messages.values()].slice(-mostShown);
    },
    get earlierCount() {
      return unlistedCount + Math.max(0, messages.size - mostShown);
    },
    async earlier() {
      if (messages.size <= mostShown) await list(nextPage);
      mostShown += pageSize;
    },
    async *open(signal) {
      const place = fromSequence === undefined ? {} : { fromSequence };
      for await (const message of service.watchSpace({ spaceId, ...place }, { signal })) {
        const { update } = message;
        if (update.case === "start" || update.case === "gap") await begin(signal); // before it counts as taken
        yield message;
      }
    },
    take({ update }) {
      fromSequence = placeAfterUpdate(update, fromSequence);
      if (update.case !== "event") return;
      const { event } = update.value;
      if (event.case === "memberJoined") members.set(event.value.id, event.value);
      else if (event.case === "memberLeft") members.delete(event.value.id);
      else if (event.value && event.value.sequence >= firstSequence) messages.set(event.value.id, event.value);
    },
  };
}
