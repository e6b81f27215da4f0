import { expect, test } from "vitest";
import { answerAtOnce, ExternalService, neither } from "../peers/external-service.ts";
import { openExternalToolsWith } from "../peers/external-tools.ts";

test("TOOL-6 a watcher that hangs with much room does not starve one that answers", async () => {
  await using external = await openExternalToolsWith({ TOOLBUS_WATCHER_ACKNOWLEDGE: "500ms" }, "only");
  const { call, calls } = external.clientsOf("only");
  const sessionId = await external.openSession();
  await using hung = new ExternalService(calls, { tools: ["weigh"], maxInFlight: 1_000 }, neither);
  await using quick = new ExternalService(calls, { tools: ["weigh"], maxInFlight: 4 }, answerAtOnce);
  const ids = Array.from({ length: 20 }, (_, n) => `weighed-${n}`);
  const weighing = ids.map((callId, n) => call({ sessionId, name: "weigh", callId, argumentsJson: `{"n":${n}}` }));
  const outputs = (await Promise.all(weighing)).map(({ output }) => output); // one that timed out says so
  expect(outputs).toEqual(ids.map((_, n) => ({ n })));
  expect(hung.handed.length).toBeGreaterThan(0);
  expect(new Set(quick.callIds)).toEqual(new Set(ids));
});
