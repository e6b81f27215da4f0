import { EventEmitter } from "node:events";
import { Readable } from "node:stream";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { failureFromConnectError } from "../../../failure/connect.ts";
import { AssemblyRoom } from "../../handling/messages/assembly.ts";
import type { HttpRequest, HttpResponse } from "../messages.ts";
import { type BodyLimits, ConnectionBudget, createSenderBytes, RequestBody, takeUnpacked } from "./request-body.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

it("SEC-5 what was read of a stream of messages is let go of while the stream goes on", async () => {
  const parts = 200;
  let sent = 0;
  const source = new Readable({
    read() {
      if (sent < parts) this.push(Buffer.alloc(64, sent++)); // and nothing more comes: the stream stays open
    },
  });
  const request = Object.assign(source, { socket: { remoteAddress: "10.0.0.1" } }) as unknown as HttpRequest;
  const limits: BodyLimits = {
    ...{ graceMs: 60_000, bytesPerSecond: 1_024, idleMs: 60_000, roomPatienceMs: 1_000 },
    ...{ connectionBytes: 1_000, holdFor: createSenderBytes(1_000), room: new AssemblyRoom() },
  };
  const response = new EventEmitter() as HttpResponse;
  const body = new RequestBody({ request, response }, new ConnectionBudget(limits), limits);
  const reading = body.messages()[Symbol.asyncIterator]();
  const read: WeakRef<object>[] = [];
  while (read.length < parts) read.push(new WeakRef((await reading.next()).value));
  for (let turn = 0; turn < 3; turn += 1) {
    await new Promise(setImmediate);
    collectGarbage();
  }
  expect(read.filter((part) => part.deref() !== undefined).length).toBeLessThan(5);
  source.destroy();
});

it("SEC-6 what is unpacked after its client has left is not held", async () => {
  const heldFor = createSenderBytes(1_000);
  let held = 0;
  const holdFor: typeof heldFor = (sender, bytes) => {
    heldFor(sender, bytes);
    held += bytes;
  };
  const limits: BodyLimits = {
    ...{ graceMs: 1_000, bytesPerSecond: 1_024, idleMs: 1_000, roomPatienceMs: 1_000 },
    ...{ connectionBytes: 1_000, holdFor, room: new AssemblyRoom() },
  };
  const request = { socket: { remoteAddress: "10.0.0.1" } } as HttpRequest;
  const response = new EventEmitter();
  const budget = new ConnectionBudget(limits);
  const body = new RequestBody({ request, response: response as HttpResponse }, budget, limits);
  body.hold(300);
  const unpacking = Promise.withResolvers<void>();
  const work = body.whileServed(
    async () => {},
    async () => {
      await unpacking.promise;
      await takeUnpacked(new Uint8Array(600));
    },
  );
  response.emit("close");
  unpacking.resolve();
  const error: unknown = await work.catch((thrown: unknown) => thrown);
  expect(held).toBe(0);
  expect(budget.held.offer(2_000)).toBe(1_000);
  expect(failureFromConnectError(error).reason).toBe("CANCELED");
});
