import { errors } from "@nats-io/transport-node";
import { expect, test } from "vitest";
import { openTestBus } from "../../../test/harness/bus.ts";

interface Deferred {
  reject(reason: unknown): void;
}

test("requests that are answered share the error by which the client ends them; others end with their own", async () => {
  await using bus = await openTestBus();
  const { connection } = bus;
  const { muxSubscriptions } = (
    connection as unknown as { protocol: { muxSubscriptions: { add: (r: object) => void } } }
  ).protocol;
  const add = muxSubscriptions.add.bind(muxSubscriptions);
  const endings: unknown[] = [];
  muxSubscriptions.add = (request) => {
    const { deferred } = request as { deferred: Deferred };
    const reject = deferred.reject.bind(deferred);
    deferred.reject = (reason) => reject(endings.push(reason) && reason);
    add(request);
  };
  connection.subscribe("echo", { callback: (_error, message) => void message.respond(message.data) });
  connection.subscribe("silent", { callback: () => {} });
  for (const text of ["one", "two"]) expect((await connection.request("echo", text)).string()).toBe(text);
  expect(endings).toHaveLength(2);
  expect(endings[0]).toBe(endings[1]);
  await expect(connection.request("silent", "", { timeout: 20 })).rejects.toBeInstanceOf(errors.TimeoutError);
  const unheard = await connection.request("nobody").catch((error: unknown) => error);
  expect(unheard instanceof errors.RequestError && unheard.isNoResponders()).toBe(true);
});
