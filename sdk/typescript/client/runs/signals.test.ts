import { getEventListeners } from "node:events";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { RunSchema, RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { openConnection } from "../connection.ts";
import { startRun } from "./start-run.ts";

const run = create(RunSchema, { id: "r", sessionId: "s", state: RunState.COMPLETED, outputText: "done" });

test("DOOR-5 a run lets go of its signal when it has ended, and when it could not begin", async () => {
  const canceled: string[] = [];
  let isRefusing = false;
  const transport = createRouterTransport(({ service }) => {
    service(RunService, {
      createRun: () => {
        if (isRefusing) throw new Error("no");
        return { run };
      },
      getRun: () => ({ run }),
      cancelRun: ({ runId }) => {
        canceled.push(runId);
        return {};
      },
      async *watchRun() {
        yield { update: { case: "event", value: { event: { case: "ended", value: {} } } } };
      },
    });
  });
  const connection = openConnection({ transport, patienceMs: 0 });
  const life = new AbortController();
  const { signal } = life;
  const held = () => getEventListeners(signal, "abort").length;
  expect((await startRun(connection, { agent: "a", input: "hi", signal }).result()).text).toBe("done");
  expect(held()).toBe(0);
  isRefusing = true;
  await expect(startRun(connection, { agent: "a", input: "hi", signal }).result()).rejects.toThrow();
  expect(held()).toBe(0);
  life.abort();
  expect(canceled).toEqual([]);
});

test("DOOR-5 a run that was aborted before the suite answered is canceled, not left to go on", async () => {
  const life = new AbortController();
  const canceled: string[] = [];
  let attempts = 0;
  const transport = createRouterTransport(({ service }) => {
    service(RunService, {
      createRun() {
        attempts += 1;
        if (attempts > 1) return { run };
        setImmediate(() => life.abort());
        throw new ConnectError("the answer was lost, and the run is stored", Code.Unavailable);
      },
      getRun: () => ({ run: { ...run, state: RunState.CANCELED } }),
      cancelRun: ({ runId }) => {
        canceled.push(runId);
        return {};
      },
      async *watchRun() {
        yield { update: { case: "event", value: { event: { case: "ended", value: {} } } } };
      },
    });
  });
  const started = startRun(openConnection({ transport }), { agent: "a", input: "hi", signal: life.signal });
  await expect(started.result()).rejects.toMatchObject({ code: "canceled" });
  await expect.poll(() => canceled).toEqual(["r"]);
  const late = startRun(openConnection({ transport }), { agent: "a", input: "hi", signal: life.signal });
  await expect(late.result()).rejects.toThrow("aborted");
  expect(attempts, "nothing is started that was aborted before").toBe(2);
});
