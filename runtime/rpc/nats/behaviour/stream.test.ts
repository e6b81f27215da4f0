import type { Interceptor } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { byte, bytes, firstBytes, openStreams } from "../testing/echo-streams.ts";
import { type EchoWorld, openEchoWorld } from "../testing/echo-world.ts";

let world: EchoWorld;
beforeAll(async () => {
  world = await openEchoWorld();
});
afterAll(async () => world[Symbol.asyncDispose]());

describe("a stream over NATS", () => {
  test("BUS-2 a server stream gives its messages in order, and ends", async () => {
    await using echoing = await openStreams(world, {
      async *serverStream(request) {
        yield* bytes(request.value[0] ?? 0);
      },
    });
    expect(await firstBytes(echoing.client.serverStream(byte(200)))).toEqual([...Array(200).keys()]);
    expect(await firstBytes(echoing.client.serverStream(byte(0)))).toEqual([]);
  });

  test("BUS-2 a client stream is read to its end and answered once", async () => {
    await using echoing = await openStreams(world, {
      async clientStream(requests) {
        return byte((await firstBytes(requests)).length);
      },
    });
    expect([...(await echoing.client.clientStream(bytes(150))).value]).toEqual([150]);
    expect([...(await echoing.client.clientStream(bytes(0))).value]).toEqual([0]);
  });

  test("BUS-2 a two-way stream answers while requests come, and after the caller has ended its half", async () => {
    await using echoing = await openStreams(world, {
      async *bidi(requests) {
        let count = 0;
        for await (const request of requests) {
          count += 1;
          yield request;
        }
        yield byte(count);
      },
    });
    const answered: number[] = [];
    async function* oneAtATime() {
      for (let n = 0; n < 3; n += 1) {
        yield byte(10 + n);
        await until(() => answered.length === n + 1);
      }
    }
    for await (const answer of echoing.client.bidi(oneAtATime())) answered.push(answer.value[0] ?? -1);
    expect(answered).toEqual([10, 11, 12, 3]);
  });

  test("BUS-2 a stream carries metadata, headers with its first answer and trailers with its end", async () => {
    await using echoing = await openStreams(world, {
      async *serverStream(_request, context) {
        context.responseHeader.set("x-back", context.requestHeader.get("x-there") ?? "");
        yield byte(1);
        context.responseTrailer.set("x-end", "ü done");
      },
    });
    const seen: string[] = [];
    const answers = echoing.client.serverStream(byte(0), {
      headers: { "x-there": "and back" },
      onHeader: (header) => seen.push(`${header.get("x-back")}`),
      onTrailer: (trailer) => seen.push(`${trailer.get("x-end")}`),
    });
    for await (const answer of answers) seen.push(`${answer.value[0]}`);
    expect(seen).toEqual(["and back", "1", "ü done"]);
  });

  test("BUS-2 the only answer of a server stream that ends with it comes in one frame, with all metadata", async () => {
    await using echoing = await openStreams(world, {
      async *serverStream(request, context) {
        context.responseHeader.set("x-head", "one");
        yield request;
        context.responseTrailer.set("x-tail", "two");
      },
    });
    const { connection } = await world.connect();
    let frames = 0;
    connection.subscribe("_INBOX.>", { callback: () => void frames++ });
    await connection.flush();
    const seen: string[] = [];
    const answers = echoing.client.serverStream(byte(7), {
      onHeader: (header) => seen.push(`${header.get("x-head")}`),
      onTrailer: (trailer) => seen.push(`${trailer.get("x-tail")}`),
    });
    for await (const { value } of answers) seen.push(`${value[0]}`);
    await connection.flush();
    expect(seen).toEqual(["one", "7", "two"]);
    expect(frames).toBe(1);
  });

  test("BUS-2 interceptors of both sides see each message of a stream and may change it", async () => {
    const seen: string[] = [];
    const named =
      (name: string): Interceptor =>
      (next) =>
      async (request) => {
        seen.push(`${name}:${request.stream}`);
        const response = await next(request);
        if (!response.stream) return response;
        const { message } = response;
        async function* counted() {
          for await (const item of message) {
            seen.push(name);
            yield item;
          }
        }
        return { ...response, message: counted() };
      };
    const serverStream = () => bytes(2);
    await using echoing = await openStreams(world, { serverStream }, { server: [named("s")], client: [named("c")] });
    expect(await firstBytes(echoing.client.serverStream(byte(0)))).toEqual([0, 1]);
    expect(seen.toSorted().join(" ")).toBe("c c c:true s s s:true");
  });
});
