import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { allPages } from "#runtime/rpc/paging/all-pages.ts";
import { until } from "#runtime/time/until.ts";
import { openReader, type Reader, readFile } from "../peers/reader.ts";

let suite: Reader;
beforeAll(async () => {
  suite = await openReader();
});
afterAll(() => suite[Symbol.asyncDispose]());

/** What the end of a call tells of the list. */
async function revisionAfterCall(sessionId: string): Promise<string> {
  let revision = "";
  for await (const { event } of suite.clients.router.callTool({ sessionId, name: "echo", argumentsJson: "{}" }))
    if (event.case === "result") revision = event.value.toolsRevision;
  return revision;
}

test("LOOP-1 the end of a call names the list that would be told, on every router, until the list changes", async () => {
  const sessionId = await suite.openSession();
  const listed = async () =>
    (await suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } } })).toolsRevision;
  const before = await listed();
  expect(before).not.toBe("");
  const agrees = async (revision: string) => (await revisionAfterCall(sessionId)) === revision;
  await until(() => agrees(before), { what: "a call to name the list" });
  const told = await Promise.all(Array.from({ length: 8 }, () => revisionAfterCall(sessionId)));
  expect(told.filter((revision) => revision !== before && revision !== "")).toEqual([]); // one may not have asked all yet
  suite.mcp.offer([readFile], [{ source: "files", available: true }]);
  const after = await until(async () => {
    const revision = await listed();
    return revision === before ? undefined : revision;
  });
  await until(() => agrees(after), { what: "a call to name the list that changed" });
});

test("LOOP-1 pages of a list that changes in between are told apart by its name, and a known list is told without any", async () => {
  const sessionId = await suite.openSession();
  const page = (pageToken: string) =>
    suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } }, pageSize: 1, pageToken });
  /** Until all routers have heard of an offer of so many tools. */
  const settle = (count: number) =>
    until(async () => {
      const lists = await Promise.all(
        Array.from({ length: 16 }, () =>
          suite.clients.router.listTools({ scope: { case: "session", value: { sessionId } } }),
        ),
      );
      return lists.every(({ tools }) => tools.length === count);
    });
  suite.mcp.offer([readFile], [{ source: "files", available: true }]);
  await settle(3);
  const first = await page("");
  const [one, ...others] = await allPages(page);
  expect(others.length).toBeGreaterThan(0);
  for (const other of others) expect(other).toMatchObject({ toolsRevision: one.toolsRevision, sources: [] });
  const knownToolsRevision = one.toolsRevision;
  const known = await suite.clients.router.listTools({
    scope: { case: "session", value: { sessionId } },
    pageSize: 1,
    knownToolsRevision,
  });
  expect(known).toMatchObject({ unchanged: true, tools: [], nextPageToken: "" });
  const further = { source: "files", tool: { ...readFile.tool, name: "zip_file" } };
  suite.mcp.offer([readFile, further], [{ source: "files", available: true }]);
  await settle(4);
  const second = await page(first.nextPageToken);
  expect(second.toolsRevision).not.toBe(first.toolsRevision);
  expect(second.tools[0]?.modelName).toBe(others[0]?.tools[0]?.modelName);
});

test("LOOP-1 who knows the list waits for another, and is told as soon as the sources make one", async () => {
  const scope = { case: "session" as const, value: { sessionId: await suite.openSession() } };
  const { toolsRevision: knownToolsRevision } = await suite.clients.router.listTools({ scope });
  const next = (seconds: number) => {
    const asked = { scope, knownToolsRevision, changeWait: durationFromMs(seconds * 1_000), pageSize: 1 };
    return suite.clients.router.listTools(asked);
  };
  expect(await next(0.2)).toMatchObject({ unchanged: true, toolsRevision: knownToolsRevision });
  let isWaiting = true;
  const told = next(10).finally(() => {
    isWaiting = false;
  });
  const again = await next(0.5);
  expect([isWaiting, again.unchanged]).toEqual([true, true]);
  const startedAt = performance.now();
  const other = { source: "files", tool: { ...readFile.tool, name: "list_files" } };
  suite.mcp.offer([readFile, other], [{ source: "files", available: true }]);
  expect((await told).unchanged).toBe(false);
  expect(performance.now() - startedAt).toBeLessThan(8_000); // the end of its time is no answer
});
