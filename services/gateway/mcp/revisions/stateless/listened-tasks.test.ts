import { expect, test } from "vitest";
import { delay } from "#runtime/time/delay.ts";
import { withTaskUpdates } from "./listened-tasks.ts";

const acknowledged = `event: message\ndata: ${JSON.stringify({
  jsonrpc: "2.0",
  method: "notifications/subscriptions/acknowledged",
  params: { notifications: {} },
})}\n\n`;

test("SEC-5 however many tasks a stream is told of, to read them takes a tenth of its time at most", async () => {
  const left = new AbortController();
  const frames = new ReadableStream<Uint8Array>({ start: (to) => to.enqueue(new TextEncoder().encode(acknowledged)) });
  const taskIds = Array.from({ length: 10 }, (_, index) => `task-${index}`);
  const asked: string[] = [];
  const read = async (taskId: string) => {
    asked.push(taskId);
    await delay(50);
    return { taskId, status: "working" };
  };
  const listened = { taskIds, read, hidesTools: true, signals: [left.signal] };
  const told = withTaskUpdates(new Response(frames), listened).body!.getReader();
  for (let count = 0; count <= taskIds.length; count += 1) await told.read(); // the acknowledgement, and each task
  await delay(2_500);
  expect(asked).toEqual(taskIds);
  left.abort();
});
