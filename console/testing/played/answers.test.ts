// Answers that a person is writing, while the suite refuses what the page asks beside (ORCH-12).

import { expect, it } from "vitest";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { openPlayedStage, queuedRun } from "./stage.ts";

it("stand as they are typed when a poll is refused", async () => {
  let isRefused = false;
  await using stage = await openPlayedStage((router) => {
    router.service(RunService, { watchRun: queuedRun });
    router.service(ToolCallService, {
      listToolCalls() {
        if (isRefused) throw connectError("resource_exhausted", "has its share", { reason: "SHARE_EXCEEDED" });
        const executionType = ExecutionType.SPACE;
        return {
          calls: [{ callId: "c", runId: "run_0", tool: "confirm", state: ToolCallState.WAITING, executionType }],
        };
      },
    });
  });
  const page = await stage.open("runs/run_0");
  await page.getByLabel("Answer").fill("half an ans");
  isRefused = true;
  await page.getByRole("alert").getByText("has its share").waitFor();
  isRefused = false;
  await expect.poll(() => page.getByRole("alert").count()).toBe(0);
  expect(await page.getByLabel("Answer").inputValue()).toBe("half an ans");
});
