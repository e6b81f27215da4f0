import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ToolCallState } from "#gen/toolbus/tool/v1/tool_call_pb.ts";
import { ListToolCallsRequestSchema } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { callerNamed } from "#runtime/rpc/identity.ts";
import { callRecord } from "../../records/record/call-record.ts";
import { listRecorded } from "./recorded-list.ts";

test("SEC-5 a page of calls among very many of one principal lets others go on", async () => {
  const owned = {
    principal: "alice",
    sessionId: "s",
    state: ToolCallState.RESOLVED,
    taken: false,
    watcherPrincipal: "",
  };
  const ids = Array.from({ length: 200_000 }, (_, n) => `c${(n * 7_919) % 200_000}`.padEnd(7, "-"));
  const known = new Map(ids.map((callId) => [callId, owned]));
  const read = async (callId: string) => callRecord({ callId, ...owned });
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const request = create(ListToolCallsRequestSchema, { pageSize: 2 });
  const options = { caller: callerNamed("alice"), signal: new AbortController().signal };
  const page = await listRecorded({ list: async () => known, read }, request, options);
  isOver = true;
  expect(page.calls.map(({ callId }) => callId)).toEqual(["c0-----", "c1-----"]);
  expect(turns).toBeGreaterThan(1);
});
