import { EventEmitter } from "node:events";
import { expect, it } from "vitest";
import { failureFromConnectError } from "../../../failure/connect.ts";
import { AssemblyRoom } from "../../handling/messages/assembly.ts";
import type { HttpRequest, HttpResponse } from "../messages.ts";
import { type BodyLimits, ConnectionBudget, createSenderBytes, RequestBody, takeUnpacked } from "./request-body.ts";

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
