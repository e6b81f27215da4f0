// An audit trail that is longer than anybody waits for (ORCH-12).

import { expect, it } from "vitest";
import { AuditService } from "#gen/toolbus/audit/v1/audit_service_pb.ts";
import { auditEvent, left } from "../../../bench/console/played-suite.ts";
import { noCalls, openPlayedStage, setHidden } from "./stage.ts";

it("is shown from its end, page by page, and followed from there", async () => {
  const stored = 2_500;
  const pageSize = 1_000;
  const watchedFrom: (bigint | undefined)[] = [];
  await using stage = await openPlayedStage((router) => {
    noCalls(router);
    router.service(AuditService, {
      async *watchAuditEvents({ fromSequence }, { signal }) {
        watchedFrom.push(fromSequence);
        const first = Number(fromSequence ?? stored);
        if (fromSequence === undefined)
          yield { update: { case: "start" as const, value: { nextSequence: BigInt(first) } } };
        for (let index = first; index < stored + 1; index++)
          yield { update: { case: "event" as const, value: auditEvent(index) } };
        await left(signal);
      },
      listAuditEvents({ pageToken }) {
        const before = pageToken === "" ? stored + 1 : Number(pageToken); // what has just happened is among them
        const first = Math.max(0, before - pageSize);
        const events = Array.from({ length: before - first }, (_, index) => auditEvent(before - 1 - index));
        return { events, nextPageToken: first === 0 ? "" : `${first}` };
      },
    });
  });
  const page = await stage.open("audit");
  await page.getByText("2,501", { exact: true }).waitFor();
  expect(watchedFrom).toEqual([undefined]);
  await page.getByLabel("Words").fill("call_0000000");
  await page.locator(".audit-row").first().waitFor();
  expect(await page.locator(".audit-row").count(), "nothing stands there twice").toBe(1);
});

it("is listed to its end though its tab was hidden while it was", async () => {
  let lists = 0;
  let isHeld = true;
  await using stage = await openPlayedStage((router) => {
    noCalls(router);
    router.service(AuditService, {
      async *watchAuditEvents({ fromSequence }, { signal }) {
        if (fromSequence === undefined) yield { update: { case: "start" as const, value: { nextSequence: 2n } } };
        await left(signal); // nothing happens
      },
      async listAuditEvents(_request, { signal }) {
        lists += 1;
        if (isHeld) await left(signal);
        return { events: [auditEvent(1), auditEvent(0)] };
      },
    });
  });
  const page = await stage.open("audit");
  await expect.poll(() => lists).toBe(1);
  await setHidden(page, true);
  isHeld = false;
  await setHidden(page, false);
  await expect.poll(() => page.locator(".audit-row").count()).toBe(2);
});
