import { create, toBinary } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { byte, firstBytes, openStreams } from "../testing/echo-streams.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";
import { keepEncoded } from "./encoded.ts";

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(async () => world[Symbol.asyncDispose]());

test("BUS-2 answers whose bytes are known go to all callers as they are, in streams of one and of many", async () => {
  const known = create(BytesValueSchema, byte(1));
  keepEncoded(known, toBinary(BytesValueSchema, create(BytesValueSchema, byte(77)))); // so that it can be told who encoded
  await using echoing = await openStreams(world, {
    async *serverStream(request) {
      for (let n = 0; n < (request.value[0] ?? 0); n += 1) yield known;
      if (request.value[0] === 2) yield byte(2);
    },
  });
  const told = (n: number) => firstBytes(echoing.client.serverStream(byte(n)));
  expect(await Promise.all([told(1), told(2), told(3)])).toEqual([[77], [77, 77, 2], [77, 77, 77]]);
});
