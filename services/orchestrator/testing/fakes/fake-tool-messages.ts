import { create } from "@bufbuild/protobuf";
import { RecordToolMessageResponseSchema } from "#gen/toolbus/internal/space/v1/tool_message_service_pb.ts";
import { type ToolMessage, ToolMessageSchema, type ToolMessageState } from "#gen/toolbus/space/v1/space_pb.ts";
import { GetActiveSpaceResponseSchema } from "#gen/toolbus/space/v1/space_service_pb.ts";
import type { ToolMessages } from "../../loop/streaming/shown-calls.ts";

export interface FakeToolMessages extends ToolMessages {
  /** The active space of everybody. */
  space: string;
  /** Every question for the active space, and every message, in order. */
  readonly asked: string[];
  readonly told: ToolMessage[];
  readonly faults: unknown[];
  /** Fails each request, if it is set. */
  failure: Error | undefined;
  /** The last status of each call that was told. */
  statuses(): Record<string, ToolMessageState>;
}

/** Spaces for tests of the loop: everything that is told is kept. */
export function createFakeToolMessages(): FakeToolMessages {
  const told: ToolMessage[] = [];
  const asked: string[] = [];
  const fake: FakeToolMessages = {
    space: "hall",
    asked,
    told,
    faults: [],
    failure: undefined,
    async getActiveSpace({ sessionId = "" }) {
      asked.push(sessionId);
      if (fake.failure) throw fake.failure;
      return create(GetActiveSpaceResponseSchema, { spaceId: fake.space });
    },
    async recordToolMessage({ message }) {
      if (fake.failure) throw fake.failure;
      told.push(create(ToolMessageSchema, message));
      return create(RecordToolMessageResponseSchema);
    },
    statuses: () => Object.fromEntries(told.map(({ callId, state: status }) => [callId, status])),
  };
  return fake;
}
