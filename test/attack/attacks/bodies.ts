// What connections, heads and bodies cost the gateway, with a key and without one.

import { brotliCompressSync, gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { AgentService } from "#gen/toolbus/agent/v1/agent_service_pb.ts";
import { SpaceService, WatchSpaceRequestSchema } from "#gen/toolbus/space/v1/space_service_pb.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import {
  bytesValue,
  openIdleStreams,
  plainPaths,
  resetStreams,
  sendHalf,
  typesOfPages,
} from "../../../services/gateway/testing/floods.ts";
import { framed, protocols, send } from "../../../services/gateway/testing/http-probe.ts";
import { type Attack, type Ground, tryAll } from "../attack.ts";

const listAgents = `/${AgentService.typeName}/ListAgents`;
const grpc = protocols.gRPC;

/** Mallory's own key, and none. */
const credentialsOf = ({ keys }: Ground) => [{ "x-api-key": keys.mallory }, {}];
const headOf = (headers: Record<string, string>, path = listAgents) => ({
  method: "POST",
  path,
  headers: { "content-type": grpc.binary, ...headers },
});

export const bodies: readonly Attack[] = [
  {
    name: "a page of another host, and a page whose name was pointed at this machine",
    requirement: "SEC-1",
    play({ openUrl }) {
      const paths = [listAgents, ...plainPaths];
      const body = new TextEncoder().encode("{}");
      const unasked = paths.flatMap((path) =>
        typesOfPages.map((type) => ({ path, headers: { "content-type": type } })),
      );
      const hosts = ["evil.example", "localhost.evil.example:7480", "127.0.0.1.evil.example", "10.0.0.1"];
      const rebound = paths.flatMap((path) =>
        hosts.map((host) => ({ path, headers: { "content-type": "application/json", host } })),
      );
      return tryAll([...unasked, ...rebound], async ({ path, headers }) => {
        const sent = { method: "POST", path, body, headers: { ...headers, origin: "https://evil.example" } };
        const { status, headers: told } = await send(openUrl, "1.1", sent);
        const isRefused = [400, 403, 415].includes(status) && !told.has("access-control-allow-origin");
        return isRefused ? undefined : `${path} as ${JSON.stringify(headers)}: HTTP ${status}`;
      });
    },
  },
  {
    name: "messages that unpack to a thousand times their size",
    requirement: "SEC-5",
    play(ground, { isShort }) {
      const plain = bytesValue((isShort ? 10 : 400) * 2 ** 20);
      const bombs = { gzip: gzipSync(plain, { level: 1 }), br: brotliCompressSync(plain, { params: { 0: 1 } }) };
      const tries = credentialsOf(ground).flatMap((headers) =>
        Object.entries(bombs).flatMap(([encoding, bomb]) =>
          Object.values(protocols).map((protocol) => ({ headers, encoding, bomb, protocol })),
        ),
      );
      return tryAll(tries, async ({ headers, encoding, bomb, protocol }) => {
        const path = `/${AgentService.typeName}/${protocol.method}`;
        const head = { "content-type": protocol.binary, [protocol.encoding]: encoding, ...headers };
        const sent = { method: "POST", path, headers: head, body: framed(protocol, bomb, 1) };
        await send(ground.url, "2", sent).catch(() => {}); // cut off, perhaps
        return undefined; // what it costs, another principal sees
      });
    },
  },
  {
    name: "a thousand requests of which half is sent",
    requirement: "SEC-5",
    async play(ground, { isShort }) {
      const part = framed(grpc, bytesValue(40_000)).subarray(0, 10_000);
      const count = isShort ? 300 : 1_000;
      for (const headers of credentialsOf(ground)) {
        using _ = sendHalf(ground.url, headOf(headers), { part, count });
        await delay(isShort ? 500 : 3_000);
      }
      return { tries: 2 * count, reached: [] };
    },
  },
  {
    name: "streams that are reset as soon as they are opened",
    requirement: "SEC-5",
    async play(ground, { isShort }) {
      const count = isShort ? 1_000 : 5_000;
      for (const headers of credentialsOf(ground)) {
        using flood = resetStreams(ground.url, headOf(headers), count);
        await until(() => flood.isOver, { timeoutMs: 10_000 }).catch(() => {}); // as many as the server takes
      }
      return { tries: 2 * count, reached: [] };
    },
  },
  {
    name: "two thousand streams that stay idle",
    requirement: "SEC-5",
    async play({ url, keys }, { isShort }) {
      const count = isShort ? 400 : 2_000;
      const message = toBinary(WatchSpaceRequestSchema, create(WatchSpaceRequestSchema, { spaceId: "hall" }));
      const head = headOf({ "x-api-key": keys.mallory }, `/${SpaceService.typeName}/WatchSpace`);
      using _ = openIdleStreams(url, head, { body: framed(grpc, message), count });
      await delay(isShort ? 1_000 : 6_000);
      return { tries: count, reached: [] };
    },
  },
];
