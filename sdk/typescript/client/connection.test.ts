import { createServer, type Http2Session } from "node:http2";
import { type AddressInfo, connect, createServer as createListener } from "node:net";
import { Code, ConnectError } from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { SpaceService } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { ToolCallService } from "#gen/toolbus/tool/v1/tool_call_service_pb.ts";
import { openConnection } from "./connection.ts";
import { createToolbus } from "./toolbus.ts";
import { watchTools } from "./watcher.ts";

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

test("DOOR-5 over HTTP/2 with pings, a stream whose cable is cut is opened again over another connection", async () => {
  const opened = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let streams = 0;
  const answer = connectNodeAdapter({
    routes: (router) =>
      router.service(ToolCallService, {
        async *watchToolCalls(_, { signal }) {
          yield { update: { case: "notice", value: { problem: "there is no such tool" } } };
          opened[streams++]?.resolve();
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
        },
      }),
  });
  const server = createServer(answer);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const cables: (() => void)[] = [];
  const listener = createListener((client) => {
    const gateway = connect((server.address() as AddressInfo).port, "127.0.0.1");
    client.pipe(gateway).pipe(client);
    for (const socket of [client, gateway]) socket.on("error", () => {});
    cables.push(() => void [client.unpipe(), gateway.unpipe()]); // nothing passes, and no end is told
  });
  await new Promise<void>((resolve) => void listener.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void [server.close(), listener.close()]);
  const baseUrl = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const pings = { pingIntervalMs: 50, pingTimeoutMs: 50 };
  const transport = createConnectTransport({ baseUrl, httpVersion: "2", ...pings });
  const watch = await watchTools(openConnection({ transport }), {
    tools: { stock_level: () => 7 },
    onNotice: () => {},
  });
  await opened[0]?.promise;
  cables[0]?.();
  await opened[1]?.promise;
  await watch.close();
});
