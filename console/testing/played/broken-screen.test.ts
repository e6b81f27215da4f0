// A screen that cannot draw what it is given (ORCH-12).

import { expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { left } from "../../../bench/console/played-suite.ts";
import { noCalls, openPlayedStage, quietRuns } from "./stage.ts";

it("says what happened, offers to reload, and leaves the other screens as they are", async () => {
  const timeout = { seconds: 10n ** 15n }; // no JSON has so many
  await using stage = await openPlayedStage((router) => {
    noCalls(router);
    router.service(RunService, { listRuns: () => ({}), watchRuns: quietRuns });
    router.service(SessionService, { listSessions: () => ({}) });
    router.service(AgentService, {
      async *watchAgents(_request, { signal }) {
        yield { agents: [{ agent: { name: "clerk" } }, { agent: { name: "bent", limits: { timeout } } }] };
        await left(signal);
      },
    });
  });
  const page = await stage.open("agents/bent");
  await page.getByRole("alert").getByText("This screen cannot be drawn: cannot encode").waitFor({ timeout: 10_000 });
  await page.getByRole("link", { name: "Runs" }).click();
  await page.getByText("No runs here").waitFor();
  await page.getByRole("link", { name: "Agents" }).click();
  await page.getByRole("link", { name: "clerk" }).waitFor();
  await page.getByRole("link", { name: "bent" }).click();
  const isLoaded = page.waitForEvent("load");
  await page.getByRole("button", { name: "reload the page" }).click();
  await isLoaded;
  expect(page.url()).toMatch(/#\/agents\/bent$/);
});
