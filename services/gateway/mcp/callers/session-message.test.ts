import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { WatchRunResponseSchema } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { OwnCall } from "../own/own-server.ts";
import { type CallerClients, sessionMessage } from "./session-message.ts";

/** A run that parked, was answered by another client, and has ended when its log has been told. */
function openRun() {
  const states = [RunState.IN_PROGRESS, RunState.COMPLETED];
  const event = (sequence: number, of: "parked" | "ended") =>
    create(WatchRunResponseSchema, {
      update: { case: "event", value: { sequence, event: { case: of, value: {} } } },
    });
  return {
    createRun: async () => ({ run: { id: "r1" } }),
    async *watchRun() {
      yield event(3, "parked");
      yield event(7, "ended");
    },
    getRun: async () => ({ run: { id: "r1", requiredCalls: [], outputText: "42", error: "", state: states.shift() } }),
  };
}

it("CTR-11 a message that is sent again is answered by the end of its run, though the run was parked meanwhile", async () => {
  const clients = {
    runs: openRun(),
    callers: { getDeclaration: async () => ({}) },
    sessions: { require: async (id: string) => ({ id }) },
  } as unknown as CallerClients;
  const call = { options: { signal: new AbortController().signal }, request: {} } as unknown as OwnCall;
  const { structuredContent } = await sessionMessage(clients, call, {
    message: "what is it?",
    session_id: "s1",
    idempotency_key: "k",
  });
  expect(structuredContent).toMatchObject({ run_id: "r1", state: "completed", output_text: "42" });
});
