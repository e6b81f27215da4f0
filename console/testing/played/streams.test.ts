// Streams that a page follows, in a browser that has six connections to a gateway (ORCH-12).

import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { noCalls, openPlayedStage, queuedRun, setHidden } from "./stage.ts";

describe("streams", () => {
  it("of tabs behind another one take none of the browser's six connections, and go on when one looks", async () => {
    let open = 0;
    await using stage = await openPlayedStage((router) => {
      noCalls(router);
      router.service(RunService, {
        async *watchRun(request, context) {
          open += 1;
          try {
            yield* queuedRun(request, context);
          } finally {
            open -= 1;
          }
        },
      });
    });
    const tabs: Page[] = [];
    for (let index = 0; index < 7; index++) {
      const tab = await stage.open("runs/run_0");
      await tab.getByRole("heading", { name: "Run of clerk" }).waitFor();
      await setHidden(tab, true);
      tabs.push(tab);
    }
    await expect.poll(() => open).toBe(0);
    await setHidden(tabs[0] as Page, false);
    await expect.poll(() => open).toBe(1);
  });

  it("of a run that has ended are not opened again, and what was refused is not told when one looks again", async () => {
    let opened = 0;
    let isRefused = true;
    await using stage = await openPlayedStage((router) => {
      noCalls(router);
      router.service(RunService, {
        async *watchRun(request) {
          opened += 1;
          if (isRefused) throw connectError("permission_denied", "not yours", { reason: "PRINCIPAL_NOT_OWNER" });
          const { value: first } = await queuedRun(request, { signal: AbortSignal.abort() }).next();
          if (first) yield first;
          const value = { runId: "run_0", sequence: 1, event: { case: "ended", value: {} } } as const;
          yield { update: { case: "event" as const, value } };
        },
      });
    });
    const page = await stage.open("runs/run_0");
    await page.getByRole("alert").getByText("not yours").waitFor({ timeout: 9_000 });
    await setHidden(page, true);
    isRefused = false;
    await setHidden(page, false);
    await page.getByRole("heading", { name: "Run of clerk" }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
    await setHidden(page, true);
    await setHidden(page, false);
    await page.waitForTimeout(500);
    expect(opened).toBe(2);
  });

  it("SEC-6 refused for a share, which is passing, are opened again", async () => {
    let refusals = 0;
    await using stage = await openPlayedStage((router) => {
      noCalls(router);
      router.service(RunService, {
        async *watchRun(request, context) {
          if (refusals++ < 2)
            throw connectError("resource_exhausted", "has its share: try again", {
              reason: "SHARE_EXCEEDED",
              metadata: { retry_in_ms: "10" },
            });
          yield* queuedRun(request, context);
        },
      });
    });
    const page = await stage.open("runs/run_0");
    await page.getByRole("heading", { name: "Run of clerk" }).waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });
});
