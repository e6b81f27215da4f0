import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, createRouterTransport } from "@connectrpc/connect";
import { expect, test } from "vitest";
import type { RunEventSchema } from "#gen/toolbus/run/v1/run_event_pb.ts";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { RunService } from "#gen/toolbus/run/v1/run_service_pb.ts";
import type { Connection } from "../connection.ts";
import { followRun } from "./run-follower.ts";

type Body = NonNullable<MessageInitShape<typeof RunEventSchema>["event"]>;

/** A run that waited for its client, was answered, and has ended. Its stream breaks after each of the events. */
const log: Body[] = [
  { case: "accepted", value: {} },
  { case: "parked", value: {} },
  { case: "callFinished", value: { callId: "a" } },
  { case: "ended", value: { state: RunState.COMPLETED } },
];

function follow({ staysWhileParked = false, breaks = false } = {}) {
  const transport = createRouterTransport(({ service }) =>
    service(RunService, {
      async *watchRun({ fromSequence = BigInt(log.length) }) {
        for (const [sequence, event] of log.entries()) {
          if (sequence < fromSequence) continue;
          yield { update: { case: "event" as const, value: { sequence, event } } };
          if (breaks) throw new ConnectError("gone", Code.Unavailable);
        }
      },
    }),
  );
  const seen: (string | undefined)[] = [];
  const connection = { url: "", client: ((service) => createClient(service, transport)) as Connection["client"] };
  const show = ({ update }: { update: { case?: string | undefined; value?: unknown } }) =>
    void seen.push((update.value as { event: { case: string } }).event.case);
  return followRun(connection, "r", { printer: { show }, staysWhileParked }).then((state) => ({ state, seen }));
}

const whole = log.map((event) => event.case);

test("LOOP-10 a run that has waited is followed to its end, also over a stream that breaks", async () => {
  expect(await follow({ staysWhileParked: true })).toEqual({ state: RunState.COMPLETED, seen: whole });
  expect(await follow({ staysWhileParked: true, breaks: true })).toEqual({ state: RunState.COMPLETED, seen: whole });
});

test("LOOP-5 who started a run is told that it waits, and leaves it", async () => {
  expect(await follow()).toEqual({ state: RunState.REQUIRES_ACTION, seen: whole.slice(0, 2) });
});
