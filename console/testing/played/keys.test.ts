// Keys that a page is given, one after the other (ORCH-12).

import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { ExecutionType } from "#gen/toolbus/tool/v1/tool_pb.ts";
import { left } from "../../../bench/console/played-suite.ts";
import { openPlayedStage, quietRuns } from "./stage.ts";

function needKey(router: ConnectRouter, getToolCall?: () => never): void {
  router.service(ToolCallService, {
    ...(getToolCall && { getToolCall }),
    listToolCalls: () => {
      throw new ConnectError("a key is needed", Code.Unauthenticated);
    },
  });
  router.service(RunService, { listRuns: () => ({}), watchRuns: quietRuns });
}

describe("a key", () => {
  it("that no request can carry is refused in words", async () => {
    await using stage = await openPlayedStage((router) => needKey(router));
    const page = await stage.open("runs");
    await page.getByLabel("Your key").fill("“the-key”");
    await page.getByRole("button", { name: "enter" }).click();
    const isRefused = () =>
      page.getByLabel("Your key").evaluate((input: HTMLInputElement) => input.validity.patternMismatch);
    await expect.poll(isRefused).toBe(true);
  });

  it("of one call that was cut off is refused in words, and can be given anew", async () => {
    await using stage = await openPlayedStage((router) => {
      needKey(router, () => {
        throw new ConnectError("the key of one call does not hold", Code.Unauthenticated);
      });
    });
    const page = await stage.open("runs");
    await page.getByLabel("Your key").fill("call.v1.eyJjYWxs");
    await page.getByRole("button", { name: "enter" }).click();
    await page.getByRole("alert").getByText("does not hold").waitFor();
    await page.getByLabel("Your key").waitFor();
  });

  it("SEC-2 of another principal shows nothing of what the last one was asked, or has answered", async () => {
    const call = { callId: "call_1", tool: "confirm_of_ann", agent: "shop", state: ToolCallState.WAITING };
    let isAnswered = false;
    await using stage = await openPlayedStage((router) => {
      router.service(ToolCallService, {
        async listToolCalls(_request, { requestHeader, signal }) {
          if (requestHeader.get("authorization") !== "Bearer ann") await left(signal); // it is busy
          const waiting = { ...call, executionType: ExecutionType.SPACE };
          return { calls: isAnswered ? [{ ...waiting, callId: "call_2", tool: "second_of_ann" }] : [waiting] };
        },
      });
      router.service(SpaceService, {
        answerToolCall() {
          isAnswered = true;
          return {};
        },
      });
    });
    const page = await stage.open("inbox");
    await page.evaluate(() => sessionStorage.setItem("toolbus-key", "ann"));
    await page.reload();
    await page.getByLabel("Answer").fill("1");
    await page.getByRole("button", { name: "answer" }).click();
    await page.getByText(/^answered · confirm_of_ann/).waitFor();
    await page.getByRole("link", { name: "Inbox 1" }).waitFor();
    await page.getByRole("button", { name: "leave" }).click();
    await page.getByLabel("Your key").fill("bob");
    await page.getByRole("button", { name: "enter" }).click();
    await page.getByRole("heading", { name: "Inbox" }).waitFor();
    expect(await page.locator("body").textContent()).not.toContain("of_ann");
    expect(await page.locator("nav .count").count(), "nobody has said that something waits for him").toBe(0);
  });

  it.each(["before", "after"])(
    "SEC-2 of another principal, given %s the last one's answer was taken, shows nothing of it",
    async (when) => {
      const call = { callId: "call_1", tool: "confirm_of_ann", agent: "shop", state: ToolCallState.WAITING };
      let take = () => {};
      const taken = new Promise<void>((resolve) => {
        take = resolve;
      });
      let isAsked = false;
      await using stage = await openPlayedStage((router) => {
        router.service(ToolCallService, {
          listToolCalls: (_request, { requestHeader }) => ({
            calls:
              requestHeader.get("authorization") === "Bearer ann"
                ? [{ ...call, executionType: ExecutionType.SPACE }]
                : [],
          }),
        });
        router.service(SpaceService, {
          async answerToolCall() {
            isAsked = true;
            await taken;
            return {};
          },
        });
      });
      const page = await stage.open("inbox");
      await page.evaluate(() => sessionStorage.setItem("toolbus-key", "ann"));
      await page.reload();
      await page.getByLabel("Answer").fill("1");
      await page.getByRole("button", { name: "answer" }).click();
      await expect.poll(() => isAsked).toBe(true);
      const isAnswered = page.waitForResponse(/AnswerToolCall/);
      const settle = async () => {
        take();
        await (await isAnswered).finished();
        await page.waitForTimeout(200);
      };
      await page.getByRole("button", { name: "leave" }).click();
      await page.getByLabel("Your key").fill("bob");
      if (when === "after") await settle();
      await page.getByRole("button", { name: "enter" }).click();
      await page.getByText("Nothing waits for you").waitFor();
      if (when === "before") await settle();
      expect(await page.locator("body").textContent()).not.toContain("of_ann");
    },
  );
});
