import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import type { Connection } from "../../cli/connection.ts";

/** A person in the space, played: says yes to whatever waits for an answer, and repeats the question in a note. */
export async function playPerson(connection: Connection, spaceId: string, signal: AbortSignal): Promise<void> {
  const spaces = connection.client(SpaceService);
  for await (const { update } of spaces.watchSpace({ spaceId, fromSequence: 0n }, { signal })) {
    if (update.case !== "event" || update.value.event.case !== "toolRequiresAction") continue;
    const { content } = update.value.event.value;
    if (content.case !== "tool") continue;
    const { question } = JSON.parse(content.value.argumentsJson) as { question: string };
    const value = JSON.stringify({ approved: true, note: `yes: ${question}` });
    await spaces.answerToolCall({
      spaceId,
      callId: content.value.callId,
      outcome: { case: "resultJson", value },
    });
  }
}
