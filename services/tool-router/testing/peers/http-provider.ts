/**
 * A third party's provider at an `http://` URL, as a process: its one tool tells that it has begun, and never ends. It writes
 * its port, and a line after each answer to who asks whether it lives.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ended, FakeProvider } from "../fakes/fake-provider.ts";

const provider = new FakeProvider();
provider.tools = [{ source: "shop", tool: { name: "buy" } }];
provider.answer = async function* (_request, signal) {
  yield { event: { case: "progress", value: { progress: 1, total: 2 } } };
  await ended(signal);
};
const handle = connectNodeAdapter({ routes: provider.routes });
const server = createServer((request, response) => {
  if (request.method === "HEAD") response.once("close", () => console.log("asked"));
  handle(request, response);
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
process.stdin.resume().on("end", () => process.exit());
