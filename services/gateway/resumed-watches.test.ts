import { create, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import {
  RunService,
  type WatchRunRequest,
  WatchRunRequestSchema,
  WatchRunResponseSchema,
} from "#gen/toolbus/run/v1/run_service_pb.ts";
import {
  SpaceService,
  type WatchSpaceRequest,
  WatchSpaceRequestSchema,
  WatchSpaceResponseSchema,
} from "#gen/toolbus/space/v1/space_service_pb.ts";
import { notSent, unknownOutcome } from "#runtime/rpc/nats/call/delivery.ts";
import { type Place, placeOf, resumedWatch } from "./resumed-watches.ts";

type Message = MessageShape<DescMessage>;
type Update = MessageInitShape<typeof WatchRunResponseSchema>["update"];

const broken = () => unknownOutcome("the instance fell silent", Code.Unavailable);
const told = (update: Update) => create(WatchRunResponseSchema, { update: update as never });
const event = (sequence: number, value: object = {}) => told({ case: "event", value: { sequence, ...value } });
const committed = (sequence: number, turn: number) =>
  event(sequence, { event: { case: "turnCommitted", value: { turn } } });
const delta = (n: number, place = { turn: 1, attempt: 1 }) =>
  told({ case: "delta", value: { ...place, index: n, delta: { case: "text", value: "x" } } });

/** A service that plays one part at each opening: its messages, then its failure, if it has one. */
function createService(...parts: { messages: Message[]; failure?: ConnectError }[]) {
  const asked: Message[] = [];
  return {
    asked,
    async *open(request: Message) {
      const part = parts[asked.length];
      asked.push(request);
      if (part === undefined) throw broken();
      yield* part.messages;
      if (part.failure !== undefined) throw part.failure;
    },
  };
}

const { signal } = new AbortController();
const runPlace = (
  request: MessageInitShape<typeof WatchRunRequestSchema> = {
    runId: "r",
    fromSequence: 0n,
    includeDeltas: true,
  },
) => placeOf(RunService.method.watchRun, create(WatchRunRequestSchema, request)) as Place;

test("LOOP-10 resumed-1 resumed-2 a watch that breaks goes on behind what was passed on, and passes on no event twice", async () => {
  const service = createService(
    { messages: [event(0), event(1)], failure: broken() },
    { messages: [], failure: broken() },
    { messages: [event(1), event(2)], failure: broken() },
    { messages: [] },
  );
  const passed = await Array.fromAsync(resumedWatch({ place: runPlace(), open: service.open, signal }));
  expect(passed).toEqual([event(0), event(1), event(2)]);
  expect(service.asked.map((request) => (request as WatchRunRequest).fromSequence)).toEqual([0n, 2n, 2n, 3n]);
});

test("LOOP-10 resumed-3 it asks for the deltas behind those of the turn that is not committed, and for none once it is", async () => {
  const reset = told({ case: "replaced", value: { turn: 2, attempt: 2, text: "so far", deltaCount: 5 } });
  const service = createService(
    { messages: [delta(0), delta(1)], failure: broken() },
    { messages: [committed(0, 1)], failure: broken() },
    { messages: [reset], failure: broken() },
    { messages: [told({ case: "replaced", value: { turn: 2, attempt: 3 } })], failure: broken() },
    { messages: [] },
  );
  await Array.fromAsync(resumedWatch({ place: runPlace(), open: service.open, signal }));
  const cursors = service.asked.map((request) => (request as WatchRunRequest).afterDelta);
  expect(cursors).toMatchObject([
    undefined,
    { turn: 1, index: 1 },
    undefined,
    { turn: 2, attempt: 2, index: 4 },
    undefined,
  ]);
});

test("LOOP-10 resumed-3 where the client stood at first is kept until something is passed on", async () => {
  const request = { runId: "r", fromSequence: 7n, includeDeltas: true, afterDelta: { turn: 3, attempt: 2, index: 9 } };
  const service = createService({ messages: [], failure: broken() }, { messages: [] });
  await Array.fromAsync(resumedWatch({ place: runPlace(request), open: service.open, signal }));
  expect(service.asked).toMatchObject([request, request]);
});

test("LOOP-10 resumed-4 resumed-5 an answer of the service ends the watch; so does that nobody began to serve it", async () => {
  for (const failure of [new ConnectError("no run r", Code.NotFound), notSent("nobody serves this")]) {
    const service = createService({ messages: [], failure });
    await expect(Array.fromAsync(resumedWatch({ place: runPlace(), open: service.open, signal }))).rejects.toBe(
      failure,
    );
    expect(service.asked).toHaveLength(1);
  }
});

test("LOOP-10 resumed-4 who leaves while the watch is opened again is waited for no longer", async () => {
  const leaving = new AbortController();
  const service = createService({ messages: [event(0)], failure: broken() });
  const stream = resumedWatch({ place: runPlace(), open: service.open, signal: leaving.signal });
  const reading = Array.fromAsync(stream, () => {
    setImmediate(() => leaving.abort(new ConnectError("left", Code.Canceled)));
  });
  await expect(reading).rejects.toMatchObject({ code: Code.Canceled });
});

test("LOOP-10 resumed-4 a watch that breaks while the gateway stops stays broken", async () => {
  const stopping = new AbortController();
  const service = createService({ messages: [event(0)], failure: broken() });
  const stream = resumedWatch({ place: runPlace(), open: service.open, signal, stopping: stopping.signal });
  const reading = Array.fromAsync(stream, () => stopping.abort(new Error("SIGTERM")));
  await expect(reading).rejects.toMatchObject({ code: Code.Unavailable, rawMessage: "the instance fell silent" });
  expect(service.asked).toHaveLength(1);
});

test("LOOP-10 resumed-5 a watch that nobody takes up again is given up with what it broke of", async () => {
  const failure = unknownOutcome("the last instance fell silent", Code.Unavailable);
  const service = createService({ messages: [event(0)], failure });
  const stream = resumedWatch({ place: runPlace(), open: service.open, signal, patienceMs: 200 });
  await expect(Array.fromAsync(stream)).rejects.toMatchObject({ code: Code.Unavailable });
  expect(service.asked.length).toBeGreaterThan(2);
});

test("BUS-4 resumed-2 the watch of a space goes on behind its last event, and tells once where it began", async () => {
  const answer = (update: object) => create(WatchSpaceResponseSchema, { update: update as never });
  const begun = answer({ case: "start", value: { nextSequence: 5n } });
  const at = (sequence: bigint) => answer({ case: "event", value: { sequence } });
  const gap = answer({ case: "gap", value: { firstSequence: 6n, lastSequence: 8n } });
  const service = createService(
    { messages: [begun], failure: broken() },
    { messages: [at(5n)], failure: broken() },
    { messages: [at(5n), gap], failure: broken() },
    { messages: [at(9n)] },
  );
  const place = placeOf(SpaceService.method.watchSpace, create(WatchSpaceRequestSchema, { spaceId: "s" })) as Place;
  expect(await Array.fromAsync(resumedWatch({ place, open: service.open, signal }))).toEqual([
    begun,
    at(5n),
    gap,
    at(9n),
  ]);
  const asked = service.asked.map((request) => (request as WatchSpaceRequest).fromSequence);
  expect(asked).toEqual([undefined, 5n, 6n, 9n]);
});
