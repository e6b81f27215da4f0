/** What others do the same with: a bare subscription on the bus, and connect-node that serves one message by itself. */
import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { fromBinary } from "@bufbuild/protobuf";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { AgentService, ListAgentsResponseSchema } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { openBus } from "#runtime/bus/bus.ts";
import type { Login } from "../measuring/bench-suite.ts";
import { argumentOf, sayReady } from "../measuring/peer-process.ts";
import { RAW_SUBJECT } from "./setting.ts";

const { login, agents } = argumentOf<{ login: Login; agents: string }>();
const bus = await openBus({ ...login, name: "baseline" });
bus.connection.subscribe(RAW_SUBJECT, {
  callback: (_error, message) => {
    message.respond(message.data);
  },
});
await bus.connection.flush();

const answer = fromBinary(ListAgentsResponseSchema, Buffer.from(agents, "base64"));
const server = createServer(
  connectNodeAdapter({ routes: (router) => router.service(AgentService, { listAgents: () => answer }) }),
);
server.listen(0, "127.0.0.1");
await once(server, "listening");
sayReady({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
