import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { Command } from "commander";
import { afterEach, expect, test, vi } from "vitest";
import { RunState } from "#gen/toolbus/run/v1/run_pb.ts";
import { SessionService } from "#gen/toolbus/session/v1/session_service_pb.ts";
import { openConnection } from "../../connection.ts";
import { closeUnlessAwaited } from "./close-session.ts";
import { withSession } from "./in-session.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** A gateway that opens a session and can close none. */
async function openGateway() {
  const routes = connectNodeAdapter({
    routes: ({ service }) => {
      service(SessionService, { createSession: () => ({ session: { id: "one" } }) });
    },
  });
  const server = createServer(routes).listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, [Symbol.dispose]: () => void server.close() };
}

function commandAt(url: string): Command {
  const command = new Command().option("--url <url>").option("--api-key <key>");
  return command.setOptionValue("url", url).setOptionValue("apiKey", "key");
}

test("what the work failed with is told, also if the session cannot be closed after it", async () => {
  using gateway = await openGateway();
  const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const fault = new Error("the outcome is unknown");
  const done = withSession({ agent: "demo" }, commandAt(gateway.url), () => Promise.reject(fault));
  await expect(done).rejects.toBe(fault);
  expect(said.mock.calls.join()).toContain("the session one stays open: ");
});

test("work that is done is done, also if the session cannot be closed after it", async () => {
  using gateway = await openGateway();
  vi.spyOn(process.stderr, "write").mockReturnValue(true);
  await withSession({ agent: "demo" }, commandAt(gateway.url), async () => {});
});

test("a run that is completed is completed, also if its session cannot be closed after it", async () => {
  using gateway = await openGateway();
  const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  await closeUnlessAwaited(openConnection({ url: gateway.url }), "one", RunState.COMPLETED);
  expect(said.mock.calls.join()).toContain("the session one stays open: ");
});
