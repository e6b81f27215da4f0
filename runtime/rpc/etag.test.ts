import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { WatchSessionResponseSchema } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { withEtag } from "./etag.ts";

test("BUS-1 a state has one etag, whoever tells it, and another state another one", () => {
  const told = (contextRevision: number) =>
    withEtag(WatchSessionResponseSchema, { session: { id: "s", contextRevision } });
  expect(told(1).etag).toMatch(/^[\w-]{22}$/);
  expect(told(1)).toEqual(told(1));
  expect(told(2).etag).not.toBe(told(1).etag);
  const again = withEtag(WatchSessionResponseSchema, create(WatchSessionResponseSchema, told(1)));
  expect(again.etag, "also of what has one").toBe(told(1).etag);
});
