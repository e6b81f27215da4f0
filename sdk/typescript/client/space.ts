import { Code, ConnectError } from "@connectrpc/connect";
import type { SpaceEvent, SpaceMessage } from "#gen/toolbus/space/v1/space_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { placeAfterUpdate } from "#runtime/rpc/watching/log-update.ts";
import { resumed } from "#runtime/rpc/watching/resumed.ts";
import { openEnding } from "#runtime/time/ending.ts";
import { type Connection, randomName } from "./connection.ts";
import { errorOf, isPassing } from "./error.ts";

/** A room in which people and agents write messages, and see the calls that are for people. */
export interface Space {
  readonly id: string;
  /** Says something as the person that the key stands for, under that name if one is given. */
  send(text: string, options?: { as?: string }): Promise<SpaceMessage | undefined>;
  /** What happens: from `from` on, 0 for all that is kept; unless told, from the first `next` on. It ends when it is left, or `signal` aborts. */
  watch(options?: { from?: bigint; signal?: AbortSignal }): AsyncGenerator<SpaceEvent>;
  /** Answers a call that waits for a person. */
  answer(callId: string, result: unknown): Promise<void>;
  /** Says why a call that waits for a person is not done. */
  refuse(callId: string, reason: string): Promise<void>;
}

/** Opens the space, or finds it. */
export async function openSpace(connection: Connection, spaceId: string): Promise<Space> {
  const spaces = connection.client(SpaceService);
  await connection
    .repeat(() => spaces.getSpace({ spaceId }))
    .catch((error: unknown) => {
      if (errorOf(error).reason !== "SPACE_NOT_FOUND") throw error;
      return connection.repeat(() => spaces.createSpace({ spaceId }));
    });

  async function submit(callId: string, outcome: { case: "resultJson" | "error"; value: string }): Promise<void> {
    const submissionId = randomName();
    await connection.repeat(() => spaces.answerToolCall({ spaceId, callId, submissionId, outcome }));
  }

  async function* watch(from: bigint | undefined, given: AbortSignal | undefined): AsyncGenerator<SpaceEvent> {
    using leaving = openEnding(given); // a stream that is left would go on
    const { signal } = leaving;
    let place = from;
    const open = async function* () {
      yield* spaces.watchSpace({ spaceId, ...(place !== undefined && { fromSequence: place }) }, { signal });
      throw new ConnectError("the stream ended", Code.Unavailable);
    };
    try {
      for await (const { update } of resumed({ open, isPassing, patienceMs: connection.patienceMs, signal })) {
        place = placeAfterUpdate(update, place);
        if (update.case === "event") yield update.value;
      }
    } catch (error) {
      if (!signal.aborted) throw errorOf(error);
    } finally {
      leaving.end();
    }
  }

  return {
    id: spaceId,
    async send(text, { as } = {}) {
      const messageId = randomName();
      const content = [{ part: { case: "text" as const, value: text } }];
      const author = as === undefined ? { case: undefined } : { case: "personName" as const, value: as };
      const { message } = await connection.repeat(() => spaces.sendMessage({ spaceId, content, messageId, author }));
      return message;
    },
    watch: ({ from, signal } = {}) => watch(from, signal),
    answer: (callId, result) => submit(callId, { case: "resultJson", value: JSON.stringify(result ?? null) }),
    refuse: (callId, reason) => submit(callId, { case: "error", value: reason }),
  };
}
