import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ModelSchema } from "#gen/toolbus/agent/v1/agent_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { begin, openProvider } from "../fakes/chat-server.ts";
import { createFakeRouter } from "../fakes/fake-router.ts";
import { followRun, openWorld, userItem } from "../test-orchestrator.ts";

test("LOOP-10 LOOP-11 words of a model that fails in the middle are taken back by a reset before the second model's", async () => {
  const seen = Promise.withResolvers<void>();
  const provider = await openProvider([
    (response) => {
      begin(response, [{ content: "half a " }, { content: "sen" }]);
      void seen.promise.then(() => response.socket?.resetAndDestroy());
    },
  ]);
  const agent = {
    model: create(ModelSchema, { provider: "openai-compatible", model: "first" }),
    fallbackModel: create(ModelSchema, { provider: "scripted", model: "second" }),
  };
  await using world = await openWorld({ router: createFakeRouter([]), agent, limits: { modelRetries: 0 } });
  await world.writeScript("second", { turns: [{ text: "a whole sentence", deltaDelayMs: 1 }] });
  await world.openOrchestrator("one", { OPENAI_BASE_URL: provider.url });

  const { run } = await world.runs.createRun({ agent: "helper", input: [userItem("hi")] });
  let shown = "";
  let takenBack = "";
  for await (const update of followRun(world.runs, run!.id, { includeDeltas: true })) {
    if (update.case === "delta" && update.value.delta.case === "text") {
      shown += update.value.delta.value;
      if (shown === "half a sen") seen.resolve();
    }
    if (update.case === "replaced") {
      takenBack ||= shown;
      shown = update.value.text;
    }
    if (update.case === "event" && update.value.event.case === "turnCommitted") {
      expect(update.value.event.value).toMatchObject({ attempt: 2, model: "second" });
      expect("a whole sentence".startsWith(shown), shown).toBe(true);
    }
  }
  expect(takenBack).toBe("half a sen");
  const { run: standing } = await world.runs.getRun({ runId: run!.id });
  expect(standing).toMatchObject({ state: RunState.COMPLETED, outputText: "a whole sentence" });
  expect(JSON.stringify(standing?.items.map(({ item }) => item.value))).not.toContain("half");
});
