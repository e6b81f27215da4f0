import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { WatchCallerResponseSchema } from "#gen/toolbus/caller/v1/caller_service_pb.ts";
import { type AttachedCaller, attachCaller } from "./attached-caller.ts";

it("CTR-11 a caller is asked with the numbers that the agent gave, digit by digit", async () => {
  const argumentsJson = '{"id":9007199254740993}';
  const callers = {
    async *watchCaller() {
      yield create(WatchCallerResponseSchema, { event: { case: "attached", value: {} } });
      yield create(WatchCallerResponseSchema, { event: { case: "request", value: { argumentsJson } } });
    },
  } as unknown as AttachedCaller["callers"];
  const { signal } = new AbortController();
  const asked = Promise.withResolvers<string>();
  const notify = async (notification: object) => asked.resolve(JSON.stringify(notification));
  using _ = await attachCaller({ callers, sessionId: "s1", options: { signal }, notify });
  expect(await asked.promise).toContain(`"arguments":${argumentsJson}`);
});
