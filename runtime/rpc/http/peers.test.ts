import { type Client, Code, createClient, type Transport } from "@connectrpc/connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import { describe, expect, test } from "vitest";
import { ErrorDetailSchema, Reason } from "#gen/toolbus/error/v1/error_pb.ts";
import { connectError } from "#runtime/failure/connect.ts";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { bytes, echo, openServer, stack, textOf } from "./testing/echo-server.ts";
import { createSelfSigned } from "./testing/self-signed.ts";

function openClient(transport: (sessionManager: Http2SessionManager) => Transport, url: string) {
  const sessions = new Http2SessionManager(url);
  stack.push({
    async [Symbol.asyncDispose]() {
      sessions.abort();
    },
  });
  return createClient(EchoService, transport(sessions));
}

const PEERS: Record<
  string,
  { canBidi: boolean; transport: (baseUrl: string, sessionManager: Http2SessionManager) => Transport }
> = {
  "Connect over HTTP/1.1": {
    canBidi: false,
    transport: (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  },
  "Connect over h2c": {
    canBidi: true,
    transport: (baseUrl, sessionManager) => createConnectTransport({ baseUrl, httpVersion: "2", sessionManager }),
  },
  "gRPC over h2c": {
    canBidi: true,
    transport: (baseUrl, sessionManager) => createGrpcTransport({ baseUrl, sessionManager }),
  },
  "gRPC-Web over HTTP/1.1": {
    canBidi: false,
    transport: (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
  },
};

async function* textsOf(messages: AsyncIterable<{ value: Uint8Array }>) {
  for await (const message of messages) yield textOf(message);
}

describe.each(Object.entries(PEERS))("%s", (_name, peer) => {
  async function openPeer(): Promise<Client<typeof EchoService>> {
    const { url } = await openServer();
    return openClient((sessions) => peer.transport(url, sessions), url);
  }

  test("makes unary calls, large ones too", async () => {
    const client = await openPeer();
    expect(textOf(await client.unary(bytes("hello")))).toBe("hello");
    const large = new Uint8Array(5_000_000).fill(7);
    expect((await client.unary({ value: large })).value.length).toBe(large.length);
  });

  test("may leave as much time as it likes: timers of 24.8 days and more are over at once", async () => {
    const client = await openPeer();
    const headers = { "connect-timeout-ms": "2592000000", "grpc-timeout": "720H" };
    expect(textOf(await client.unary(bytes("hello"), { headers }))).toBe("hello");
    const said = await Array.fromAsync(textsOf(client.serverStream(bytes("a"), { headers })));
    expect(said).toEqual(["a 1", "a 2", "a 3"]);
  });

  test("reads a server's stream", async () => {
    const client = await openPeer();
    expect(await Array.fromAsync(textsOf(client.serverStream(bytes("a"))))).toEqual(["a 1", "a 2", "a 3"]);
  });

  test("gets the head of a stream that has nothing to say yet, and what comes then", async () => {
    const begun = Promise.withResolvers<void>();
    const long = "late".repeat(1_000);
    const { url } = await openServer({
      async *serverStream() {
        await begun.promise;
        yield bytes(long);
        throw connectError("not_found", "no more", { reason: "RUN_NOT_FOUND" });
      },
    });
    const client = openClient((sessions) => peer.transport(url, sessions), url);
    const said: string[] = [];
    const read = async () => {
      for await (const text of textsOf(client.serverStream(bytes("a"), { onHeader: () => begun.resolve() })))
        said.push(text);
    };
    await expect(read()).rejects.toMatchObject({ code: Code.NotFound, rawMessage: "no more" });
    expect(said).toEqual([long]);
  });

  test("sends a stream", async () => {
    const client = await openPeer();
    async function* requests() {
      yield bytes("a");
      yield bytes("b");
    }
    expect(textOf(await client.clientStream(requests()))).toBe("a+b");
  });

  // HTTP/1.1 has no two-way streams: its answer comes after the request.
  if (!peer.canBidi) return;
  test("talks both ways at once", async () => {
    const client = await openPeer();
    let answer = Promise.withResolvers<string>();
    async function* requests() {
      for (const text of ["one", "two", "three"]) {
        answer = Promise.withResolvers();
        yield bytes(text);
        expect(await answer.promise).toBe(text);
      }
    }
    let answers = 0;
    for await (const text of textsOf(client.bidi(requests()))) {
      answers++;
      answer.resolve(text);
    }
    expect(answers).toBe(3);
  });
});

test("grpc-js calls it", async () => {
  const server = await openServer();
  const method = {
    path: "/toolbus.echo.v1.EchoService/ServerStream",
    requestStream: false,
    responseStream: true,
    requestSerialize: (value: Buffer) => value,
    requestDeserialize: (value: Buffer) => value,
    responseSerialize: (value: Buffer) => value,
    responseDeserialize: (value: Buffer) => value,
  } as const;
  const GrpcClient = grpc.makeGenericClientConstructor({ serverStream: method }, "Echo");
  const client = new GrpcClient(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure());
  const call = client.serverStream!(Buffer.from([0x0a, 1, 0x78])) as grpc.ClientReadableStream<Buffer>;
  const answers = await Array.fromAsync(call as AsyncIterable<Buffer>);
  expect(answers.map((answer) => answer.subarray(2).toString())).toEqual(["x 1", "x 2", "x 3"]);
  client.close();
});

test.each([
  ["/toolbus.echo.v1.EchoService/Nothing", "METHOD_UNIMPLEMENTED", /no method Nothing.*Unary/],
  ["/toolbus.nothing.v1.NoService/Nothing", "SERVICE_NOT_FOUND", /no service toolbus\.nothing\.v1\.NoService/],
  ["/toolbus.echo.v1.EchoService/Unary", "REQUEST_MALFORMED", /parse binary/],
] as const)("BUS-3 grpc-js reads why a broken call of %s is refused: %s", async (path, reason, says) => {
  const server = await openServer();
  const client = new grpc.Client(`127.0.0.1:${server.port}`, grpc.credentials.createInsecure());
  const same = (value: Buffer) => value;
  const { promise, resolve } = Promise.withResolvers<grpc.ServiceError | null>();
  client.makeUnaryRequest(path, same, same, Buffer.of(0xff), resolve);
  const error = await promise;
  client.close();
  expect(error?.details).toMatch(says);
  const [status = ""] = error?.metadata.get("grpc-status-details-bin") ?? [];
  const told = findTrailerError(new Headers({ "grpc-status-details-bin": Buffer.from(status).toString("base64") }));
  expect(told?.code).toBe(error?.code);
  expect(told?.findDetails(ErrorDetailSchema)).toMatchObject([{ reason: Reason[reason] }]);
});

test("over TLS it speaks both versions, told apart by ALPN, and drains", async () => {
  const tls = createSelfSigned();
  const server = await openServer(echo, { tls });
  expect(server.url).toMatch(/^https:/);
  for (const httpVersion of ["1.1", "2"] as const) {
    const transport = createConnectTransport({ baseUrl: server.url, httpVersion, nodeOptions: { ca: tls.cert } });
    expect(textOf(await createClient(EchoService, transport).unary(bytes(httpVersion)))).toBe(httpVersion);
  }
  await server[Symbol.asyncDispose]();
});
