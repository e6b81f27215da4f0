// Lists of more than is shown, or told, at first (ORCH-12).

import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { HealthState } from "#gen/toolbus/mcp/v1/mcp_server_pb.ts";
import { McpServerService } from "#gen/toolbus/mcp/v1/mcp_server_service_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { MemoryKind } from "#gen/toolbus/space/v1/memory_pb.ts";
import { MemoryService } from "#gen/toolbus/space/v1/memory_service_pb.ts";
import { SpaceMessageSchema } from "#gen/toolbus/space/v1/space_pb.ts";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { left, pageOfRuns } from "../../../bench/console/played-suite.ts";
import { noCalls, openPlayedStage, quietRuns, setHidden } from "./stage.ts";

describe("a list of runs", () => {
  it("finds words among runs that are older than its first page, and says meanwhile that it looks", async () => {
    let pages = 0;
    await using stage = await openPlayedStage((router) => {
      noCalls(router);
      router.service(RunService, {
        watchRuns: quietRuns,
        async listRuns({ pageSize, pageToken }) {
          pages += 1;
          return pageOfRuns(1_000, pageSize, pageToken);
        },
      });
    });
    const page = await stage.open("runs?words=Question+950");
    await page.locator(".run-row", { hasText: "Question 950," }).waitFor();
    await page.goto(page.url().replace("950", "nobody asked"));
    await page.getByText("No runs here").waitFor();
    expect(pages, "no page is asked for twice").toBeLessThanOrEqual(10);
  });

  it("shows what the words leave of it, however far it was scrolled", async () => {
    await using stage = await openPlayedStage((router) => {
      noCalls(router);
      router.service(RunService, {
        watchRuns: quietRuns,
        listRuns: ({ pageSize, pageToken }) => pageOfRuns(150, pageSize, pageToken),
      });
    });
    const page = await stage.open("runs");
    await page.locator(".run-row").first().waitFor();
    await page.locator(".rows").evaluate((box) => {
      box.scrollTop = box.scrollHeight;
    });
    await page.locator(".run-row", { hasText: "Question 149," }).waitFor();
    await page.getByLabel("Words").fill("Question 3,");
    await page.locator(".run-row", { hasText: "Question 3," }).waitFor();
  });

  it("stands where it was left when one comes back from a run", async () => {
    await using stage = await openPlayedStage((router) => {
      noCalls(router);
      router.service(RunService, {
        watchRuns: quietRuns,
        listRuns: ({ pageSize, pageToken }) => pageOfRuns(3_000, pageSize, pageToken),
      });
    });
    const page = await stage.open("runs");
    const scroll = (box: Element) => {
      box.scrollTop = 44 * 1_500;
      return box.scrollTop;
    };
    await expect.poll(() => page.locator(".rows").evaluate(scroll)).toBe(44 * 1_500);
    await page.locator(".run-row", { hasText: "Question 1505," }).getByRole("link").click();
    await page.getByRole("heading", { name: "Run", exact: true }).waitFor();
    await page.goBack();
    await expect.poll(() => page.locator(".rows").evaluate((box) => box.scrollTop)).toBe(44 * 1_500);
    await page.locator(".run-row", { hasText: "Question 1505," }).waitFor();
    await page.goForward();
    await page.getByRole("link", { name: "Runs" }).click();
    await page.locator(".run-row", { hasText: "Question 0," }).waitFor();
  });

  it("has no run that was deleted while its tab was hidden, and is as long as it was", async () => {
    let isDeleted = false;
    await using stage = await openPlayedStage((router) => {
      noCalls(router);
      router.service(RunService, {
        async *watchRuns(request, context) {
          if (request.fromSequence === undefined) yield* quietRuns(request, context);
          await left(context.signal);
        },
        listRuns({ pageSize, pageToken }) {
          const { runs, nextPageToken } = pageOfRuns(1_000, pageSize, pageToken);
          return { runs: runs.filter(({ id }) => !isDeleted || id !== "run_0"), nextPageToken };
        },
      });
    });
    const page = await stage.open("runs?words=Question+950");
    const shown = (text: string) => page.locator(".run-row", { hasText: text }).count();
    await expect.poll(() => shown("Question 950,")).toBe(1);
    await setHidden(page, true);
    isDeleted = true;
    await setHidden(page, false);
    await page.getByLabel("Words").fill("");
    await expect.poll(() => shown("Question 0,")).toBe(0);
    await expect.poll(() => shown("Question 1,")).toBe(1);
    await page.getByText("999", { exact: true }).waitFor({ timeout: 5_000 });
  });

  it("goes on looking for words when a page of it was refused", async () => {
    let refusals = 1;
    await using stage = await openPlayedStage((router) => {
      noCalls(router);
      router.service(RunService, {
        watchRuns: quietRuns,
        listRuns({ pageSize, pageToken }) {
          if (pageToken === "400" && refusals-- > 0) throw new ConnectError("cut off", Code.Unavailable);
          return pageOfRuns(1_000, pageSize, pageToken);
        },
      });
    });
    const page = await stage.open("runs?words=Question+950");
    await page.locator(".run-row", { hasText: "Question 950," }).waitFor({ timeout: 10_000 });
  });

  it("runs one again under another key when it was left out of the choice meanwhile", async () => {
    const keys: string[] = [];
    await using stage = await openPlayedStage((router) => {
      noCalls(router);
      router.service(RunService, {
        watchRuns: quietRuns,
        listRuns: ({ pageSize, pageToken }) => pageOfRuns(2, pageSize, pageToken),
        forkRun({ idempotencyKey }) {
          keys.push(idempotencyKey);
          throw new ConnectError("cut off after it was stored", Code.Internal);
        },
      });
    });
    const page = await stage.open("runs");
    const again = page.getByRole("button", { name: "run again" });
    await page.getByLabel("choose run run_0").check();
    await again.click();
    await expect.poll(() => keys.length).toBe(1);
    await page.getByRole("alert").getByText("cut off").waitFor();
    await page.getByLabel("choose run run_0").uncheck();
    await page.getByLabel("choose run run_0").check();
    await again.click();
    await expect.poll(() => keys.length).toBe(2);
    expect(keys[1]).not.toBe(keys[0]);
  });

  it("runs each again once, though an answer was lost and another refused", async () => {
    const keys: string[] = [];
    await using stage = await openPlayedStage((router) => {
      noCalls(router);
      router.service(RunService, {
        watchRuns: quietRuns,
        listRuns: ({ pageSize, pageToken }) => pageOfRuns(3, pageSize, pageToken),
        forkRun({ runId, idempotencyKey }) {
          const isFirst = keys.length < 3;
          keys.push(`${runId} ${idempotencyKey}`);
          if (isFirst && runId === "run_1") throw new ConnectError("cut off after it was stored", Code.Internal);
          return { run: { id: "run_new", state: RunState.QUEUED } };
        },
      });
    });
    const page = await stage.open("runs");
    for (const id of ["run_0", "run_1", "run_2"]) await page.getByLabel(`choose run ${id}`).check();
    await page.getByRole("button", { name: "run again" }).click();
    await page.getByRole("alert").getByText("cut off").waitFor();
    await page.getByText("1 run chosen").waitFor();
    await page.getByRole("button", { name: "run again" }).click();
    await expect.poll(() => keys.length).toBe(4);
    expect(keys[3], "the same is asked again under the same key").toMatch(/^run_1 .+/);
    expect(keys[3]).toBe(keys.find((key) => key.startsWith("run_1")));
  });
});

it("a list of spaces has those of all pages, and counts them", async () => {
  await using stage = await openPlayedStage((router) => {
    noCalls(router);
    router.service(SpaceService, {
      listSpaces: ({ pageToken }) =>
        pageToken === ""
          ? { spaces: [{ id: "desk" }, { id: "hall" }], nextPageToken: "more" }
          : { spaces: [{ id: "yard" }] },
    });
  });
  const page = await stage.open("spaces");
  await page.getByRole("link", { name: "yard" }).waitFor();
  await page.locator(".screen-head").getByText("3", { exact: true }).waitFor();
});

it("a space is shown from its latest messages on, and those before them are asked for", async () => {
  const said = (id: number) => {
    const value = { content: [{ part: { case: "text" as const, value: `message ${id}.` } }] };
    return create(SpaceMessageSchema, { id: `${id}`, sequence: BigInt(id), content: { case: "text", value } });
  };
  await using stage = await openPlayedStage((router) => {
    noCalls(router);
    router.service(SpaceService, {
      listSpaces: () => ({ spaces: [{ id: "desk" }] }),
      getSpace: () => ({ space: { id: "desk", members: [{ id: "ann", name: "ann herself" }] } }),
      listMessages({ pageSize, pageToken }) {
        const last = Number(pageToken || 150);
        const count = Math.min(pageSize, last);
        const messages = Array.from({ length: count }, (_, index) => said(last - index));
        return { messages, nextPageToken: count < last ? `${last - count}` : "", totalSize: 150 };
      },
      async *watchSpace({ fromSequence }, { signal }) {
        expect(fromSequence, "not all that ever happened").toBeUndefined();
        yield { update: { case: "start" as const, value: { nextSequence: 151n } } };
        for (const id of [1, 151]) {
          const event = { case: "messagePosted", value: said(id) } as const;
          yield { update: { case: "event" as const, value: { spaceId: "desk", sequence: 150n + BigInt(id), event } } };
        }
        await left(signal);
      },
    });
  });
  const page = await stage.open("spaces/desk");
  page.setDefaultTimeout(10_000);
  await page.getByText("ann herself").waitFor();
  await page.getByText("message 151.").waitFor();
  const shown = page.locator(".messages li");
  expect(await shown.first().textContent(), "not the first, of which was told just now").toContain("message 51.");
  await page.getByRole("button", { name: "earlier messages (50)" }).click();
  await expect.poll(() => shown.count()).toBe(151);
  expect(await shown.first().textContent()).toContain("message 1.");
  expect(await page.getByRole("button", { name: "earlier messages" }).count()).toBe(0);
});

it("a space that is followed for long shows its latest messages, and the others when asked", async () => {
  const value = (id: number) => ({ id: `${id}`, sequence: BigInt(id), content: { case: "text" as const, value: {} } });
  await using stage = await openPlayedStage((router) => {
    noCalls(router);
    router.service(SpaceService, {
      listSpaces: () => ({ spaces: [{ id: "desk" }] }),
      getSpace: () => ({ space: { id: "desk" } }),
      listMessages: () => ({ messages: [], totalSize: 0 }),
      async *watchSpace(_, { signal }) {
        yield { update: { case: "start" as const, value: { nextSequence: 1n } } };
        for (let id = 1; id <= 350; id += 1) {
          const event = { case: "messagePosted" as const, value: value(id) };
          yield { update: { case: "event" as const, value: { spaceId: "desk", sequence: BigInt(id), event } } };
        }
        await left(signal);
      },
    });
  });
  const page = await stage.open("spaces/desk");
  page.setDefaultTimeout(10_000);
  const shown = page.locator(".messages li");
  await expect.poll(() => shown.count()).toBe(300);
  await page.getByRole("button", { name: "earlier messages (50)" }).click();
  await expect.poll(() => shown.count()).toBe(350);
  expect(await page.getByRole("button", { name: "earlier messages" }).count()).toBe(0);
});

it("servers are counted on all pages, and one of the second shows what it wrote last", async () => {
  const connections = [0, 1, 2].map((index) => ({
    id: `c${index}`,
    server: `server-${index}`,
    health: HealthState.HEALTHY,
    lastLines: [`line of ${index}`],
  }));
  await using stage = await openPlayedStage((router) => {
    noCalls(router);
    router.service(RunService, { watchRuns: quietRuns, listRuns: () => ({}) });
    router.service(AgentService, { listAgents: () => ({}) });
    router.service(McpServerService, {
      listConnections: ({ pageToken }) =>
        pageToken === ""
          ? { connections: connections.slice(0, 2), nextPageToken: "more" }
          : { connections: connections.slice(2) },
      async *watchConnections(_request, { signal }) {
        yield { connections };
        await left(signal);
      },
    });
  });
  const page = await stage.open("overview");
  await page.getByRole("link", { name: "MCP servers: 3 healthy" }).click({ timeout: 10_000 });
  await page.locator("li", { hasText: "server-2" }).getByText("what it wrote last").click();
  await page.getByText("line of 2").waitFor({ timeout: 10_000 });
});

it("a memory is shown whole, line by line", async () => {
  const entry = (key: string, text = "kept") => ({ key, text, kind: MemoryKind.MEMORY });
  const member = { id: "session:s:keeper", name: "keeper" };
  await using stage = await openPlayedStage((router) => {
    noCalls(router);
    router.service(SpaceService, {
      listSpaces: () => ({ spaces: [{ id: "desk" }] }),
      async *watchSpace(_request, { signal }) {
        const event = { case: "memberJoined", value: member } as const;
        yield { update: { case: "event" as const, value: { spaceId: "desk", sequence: 1n, event } } };
        await left(signal);
      },
    });
    router.service(MemoryService, {
      listEntries: ({ pageToken }) =>
        pageToken === ""
          ? { entries: [entry("first", "one line\nanother line")], nextPageToken: "more" }
          : { entries: [entry("last")] },
    });
  });
  const page = await stage.open("spaces/desk");
  await page.getByText("Goals, plans and memory of keeper").click();
  await page.getByText("last", { exact: true }).waitFor({ timeout: 10_000 });
  const lines = page.getByText("one line another line");
  expect(await lines.evaluate((text) => text.getClientRects().length), "each stands on its own").toBeGreaterThan(1);
});

it("a list that is empty says what makes it so, and what to do next", async () => {
  await using stage = await openPlayedStage((router) => {
    noCalls(router);
    router.service(RunService, {
      watchRuns: quietRuns,
      listRuns: ({ agent }) => (agent === "" ? pageOfRuns(1, 10, "") : {}),
    });
    router.service(SpaceService, { listSpaces: () => ({}) });
    router.service(SessionService, { listSessions: () => ({}) });
    router.service(AgentService, {
      async *watchAgents(_request, { signal }) {
        yield { agents: [{ agent: { name: "clerk" } }] };
        await left(signal);
      },
    });
  });
  const page = await stage.open("runs?agent=nobody&words=gone");
  page.setDefaultTimeout(10_000);
  await page.getByRole("link", { name: "all runs" }).click();
  await page.locator(".run-row", { hasText: "Question 0," }).waitFor();
  await page.goto(page.url().replace(/#.*/, "#/spaces"));
  await page.getByText("toolbus spaces create").waitFor();
  await page.goto(page.url().replace(/#.*/, "#/agents/gone"));
  await page.getByText("There is no agent “gone”").waitFor();
});
