import type { SpaceMessage } from "#gen/toolbus/space/v1/space_pb.ts";
import type { ListMessagesRequest } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { sizeOfPage } from "#runtime/rpc/paging/page.ts";
import { placeFromToken, tokenFromPlace } from "#runtime/rpc/paging/page-token.ts";
import type { Messages } from "../messages/messages.ts";

/** A page of a space's messages, latest first: its token is the position before which the next one begins. */
export async function pageOfMessages(
  messages: Pick<Messages, "list">,
  { spaceId, pageSize, pageToken, skip }: ListMessagesRequest,
): Promise<{ messages: SpaceMessage[]; totalSize: number; nextPageToken: string }> {
  const list = ["messages", spaceId];
  const page = { offset: skip, limit: sizeOfPage(pageSize), before: BigInt(placeFromToken(list, pageToken) || 0) };
  const { messages: listed, total, before } = await messages.list(spaceId, page);
  const nextPageToken = tokenFromPlace(list, before === 0n ? "" : String(before));
  return { messages: listed.toReversed(), totalSize: total, nextPageToken };
}
