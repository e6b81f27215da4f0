import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { openReader, type Reader, readFile } from "./testing/reader.ts";

let suite: Reader;
beforeAll(async () => {
  suite = await openReader();
});
afterAll(() => suite[Symbol.asyncDispose]());

/** What the end of a call tells of the list. */
async function revisionAfterCall(sessionId: string): Promise<string> {
  let revision = "";
  for await (const told of suite.clients.router.callTool({ sessionId, name: "echo", argumentsJson: "{}" }))
    if (told.event.case === "result") revision = told.toolsRevision;
  return revision;
}

test("LOOP-1 the end of a call names the list that would be told, on every router, until the list changes", async () => {
  const sessionId = await suite.openSession();
  const listed = async () => (await suite.clients.router.listTools({ sessionId })).toolsRevision;
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
