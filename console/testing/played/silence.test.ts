// A suite that takes what it is asked and answers nothing, as one that is frozen (ORCH-12).

import { expect, it } from "vitest";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { left } from "../../../bench/console/played-suite.ts";
import { openPlayedStage, queuedRun } from "./stage.ts";

it("is told as not reached, and what was followed there is followed elsewhere", async () => {
  let isFrozen = false;
  await using stage = await openPlayedStage((router) => {
    router.service(ToolCallService, {
      async listToolCalls(_request, { signal }) {
        if (isFrozen) await left(signal);
        return { calls: [] };
      },
    });
    router.service(AuditService, {
      async listAuditEvents(_request, { signal }) {
        if (isFrozen) await left(signal);
        return {};
      },
    });
    router.service(RunService, {
      async *watchRun(request, context) {
        if (request.fromSequence === 1n && !isFrozen) {
          const value = { runId: "run_0", sequence: 1, event: { case: "claimed", value: {} } } as const;
          yield { update: { case: "event" as const, value } };
        }
        yield* queuedRun(request, context);
      },
    });
  });
  const page = await stage.open("runs/run_0");
  await page.getByRole("heading", { name: "Run of clerk" }).waitFor();
  isFrozen = true;
  await page.getByText(/since \d.* the suite is not reached/).waitFor();
  isFrozen = false; // another gateway answers now, and not what this one was asked
  await expect.poll(() => page.getByRole("status").textContent()).toBe("");
  await page.getByText("in progress", { exact: true }).waitFor();
});
