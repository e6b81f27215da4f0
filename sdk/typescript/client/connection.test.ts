import { createServer, type Http2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { openConnection } from "./connection.ts";
import { createToolbus } from "./toolbus.ts";

test.each([
  ["http://127.0.0.1:1", /^http:\/\/127\.0\.0\.1:1 cannot be reached: (bad port|connect ECONNREFUSED)/],
  ["http://127.0.0.1:65533", /^http:\/\/127\.0\.0\.1:65533 cannot be reached: connect ECONNREFUSED/],
  ["nowhere", /^nowhere cannot be reached: Invalid URL$/],
])("PROD-2 a suite at %s that cannot be reached is named by its address, with what is wrong", async (url, message) => {
  const opening = createToolbus({ url, apiKey: "", patienceMs: 0 }).openSpace("desk");
  await expect(opening).rejects.toMatchObject({ code: "unavailable", message: expect.stringMatching(message) });
});

test("DOOR-5 what may arrive twice is sent again over HTTP/2 if its connection is closed, and not if the suite has canceled it", async () => {
  const sessions: Http2Session[] = [];
  let calls = 0;
  const answer = connectNodeAdapter({
    routes: (router) =>
      router.service(SpaceService, {
        getSpace() {
          calls += 1;
          if (calls === 1) sessions[0]?.destroy();
          if (calls === 3) throw new ConnectError("by the suite", Code.Canceled);
          return {};
        },
      }),
  });
  const server = createServer(answer).on("session", (session) => void sessions.push(session));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const connection = openConnection({ transport: createConnectTransport({ baseUrl, httpVersion: "2" }) });
  const spaces = connection.client(SpaceService);
  const ask = () => connection.repeat(() => spaces.getSpace({ spaceId: "desk" }));
  await ask();
  expect(calls).toBe(2);
  await expect(ask()).rejects.toMatchObject({ code: "canceled" });
  expect(calls).toBe(3);
  for (const session of sessions) session.destroy();
});
