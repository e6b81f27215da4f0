import { afterAll, beforeAll, expect, test } from "vitest";
import { AuditKind } from "#gen/toolbus/audit/v1/audit_pb.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { until } from "#runtime/time/until.ts";
import { ExternalService } from "../peers/external-service.ts";
import { openReader, type Reader } from "../peers/reader.ts";

let suite: Reader;
beforeAll(async () => {
  suite = await openReader();
});
afterAll(() => suite[Symbol.asyncDispose]());

test("ORCH-11 what a router decided right before SIGTERM stands on the trail when it has ended", async () => {
  const sessionId = await suite.openSession();
  const { pid, exited } = await suite.startRouterProcess("leaving");
  const leaving = suite.clientsOf("leaving");
  await leaving.router.listTools({ scope: { case: "session", value: { sessionId } } });
  const names = ["echo", "remove_file", "echo", "nothing"];
  await Promise.all(names.map((name, n) => leaving.call({ sessionId, name, callId: `last-${n}` })));
  process.kill(pid, "SIGTERM"); // within the moment for which events are gathered
  expect(await exited).toMatchObject({ code: 0 });
  const { events } = await suite.clients.audit.listAuditEvents({ filter: { sessionId }, pageSize: 100 });
  const decisions = events.filter(
    ({ service, callId }) => service === "tool-router.leaving" && callId.startsWith("last-"),
  );
  expect(new Map(decisions.map(({ callId, kind }) => [callId, kind]))).toEqual(
    new Map([
      ["last-0", AuditKind.PERMITTED],
      ["last-1", AuditKind.BLOCKED],
      ["last-2", AuditKind.PERMITTED],
      ["last-3", AuditKind.BLOCKED],
    ]),
  );
});

test("TOOL-6 a watcher whose router stops is told so, as one that is to watch again", async () => {
  const leaving = await suite.startRouter("stopping", "stopping");
  const { calls } = suite.clientsOf("stopping");
  await using service = new ExternalService(calls, { tools: ["weigh"] });
  await until(() => service.notices.length > 0);
  await leaving[Symbol.asyncDispose]();
  await until(() => service.end !== undefined);
  expect(failureFromConnectError(service.end)).toMatchObject({ code: "unavailable", reason: "INSTANCE_STOPPING" });
});
