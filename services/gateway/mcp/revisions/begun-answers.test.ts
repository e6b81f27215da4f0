// What a client of the older protocol can come back for.

import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { expect, it } from "vitest";
import { openTestDoor, postMessage } from "../http/testing/door.ts";

/** A door before services that tell what they were asked for, and how far the answer was by then. */
async function openDoor(whenAsked: (response: ServerResponse | undefined) => unknown = () => undefined) {
  let response: ServerResponse | undefined;
  const begun: boolean[] = [];
  const given = Promise.withResolvers<void>();
  const door = await openTestDoor({
    whenSessionAsked: () => whenAsked(response),
    tools: {
      async *callTool() {
        begun.push((response?.socket?.bytesWritten ?? 0) > 0);
        yield { event: { case: "result", value: { outputJson: "1" } } };
      },
    },
    takeCall: () => () => given.resolve(),
  });
  door.server.prependListener("request", (_request, own) => {
    response = own;
  });
  return { ...door, begun, ended: given.promise };
}

const calling = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "count", arguments: {} } };

it("DOOR-1 a call is begun when its client has the head of the answer, with which it can come back", async () => {
  await using door = await openDoor();
  const answer = await postMessage(door.url, calling);
  expect(await answer.text()).toContain('"text":"1"');
  expect(door.begun).toEqual([true]);
});

it.each(["2025-06-18", "2025-11-25"])(
  "DOOR-1 a call whose client of %s has left before it has the head of the answer is not begun",
  async (version) => {
    const leaving = new AbortController();
    await using door = await openDoor(async (response) => {
      const closed = once(response!, "close");
      leaving.abort();
      await closed;
    });
    const { signal } = leaving;
    await expect(postMessage(door.url, calling, { version, signal })).rejects.toThrow();
    await door.ended;
    expect(door.begun).toEqual([]);
  },
);
