import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { create } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError, createClient, type ServiceImpl, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import * as grpc from "@grpc/grpc-js";
import { afterEach, describe, expect, test } from "vitest";
import { EchoService } from "#runtime/rpc/nats/echo-service.fixture.ts";
import { until } from "#runtime/time/until.ts";
import { decideVersion } from "./first-bytes.ts";
import { createSelfSigned } from "./self-signed.fixture.ts";
import { type HttpServer, type HttpServerOptions, serveOnHttp } from "./server.ts";

const stack: AsyncDisposable[] = [];

afterEach(async () => {
  for (const opened of stack.splice(0).reverse()) await opened[Symbol.asyncDispose]();
});

const bytes = (text: string) => create(BytesValueSchema, { value: new TextEncoder().encode(text) });
const textOf = (message: { value: Uint8Array }) => new TextDecoder().decode(message.value);

const echo: Partial<ServiceImpl<typeof EchoService>> = {
  unary: (request) => request,
  async *serverStream(request) {
    for (let n = 1; n <= 3; n++) yield bytes(`${textOf(request)} ${n}`);
  },
  async clientStream(requests) {
    const texts: string[] = [];
    for await (const request of requests) texts.push(textOf(request));
    return bytes(texts.join("+"));
  },
  async *bidi(requests) {
    for await (const request of requests) yield request;
  },
};

async function openServer(
  implementation: Partial<ServiceImpl<typeof EchoService>> = echo,
  options: Partial<HttpServerOptions> = {},
): Promise<HttpServer> {
  const routes: HttpServerOptions["routes"] = (router) => router.service(EchoService, implementation);
  const server = await serveOnHttp({ routes, drainTimeoutMs: 2_000, ...options });
  stack.push(server);
  return server;
}

function openClient(transport: (sessionManager: Http2SessionManager) => Transport, url: string) {
  const sessions = new Http2SessionManager(url);
  stack.push({
    async [Symbol.asyncDispose]() {
      sessions.abort();
    },
  });
  return createClient(EchoService, transport(sessions));
}

async function openRaw(server: HttpServer): Promise<{ socket: Socket; text: () => string }> {
  const socket = connect(server.port, "127.0.0.1");
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
  });
  socket.on("error", () => {});
  stack.push({
    async [Symbol.asyncDispose]() {
      socket.destroy();
    },
  });
  await once(socket, "connect");
  return { socket, text: () => text };
}

/** A handler that waits until the test lets it answer. */
function createGate() {
  const entered = Promise.withResolvers<void>();
  const open = Promise.withResolvers<void>();
  return {
    entered: entered.promise,
    open: open.resolve,
    pass() {
      entered.resolve();
      return open.promise;
    },
  };
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

  test("reads a server's stream", async () => {
    const client = await openPeer();
    expect(await Array.fromAsync(textsOf(client.serverStream(bytes("a"))))).toEqual(["a 1", "a 2", "a 3"]);
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

describe("the first bytes", () => {
  test("are HTTP/2 when they are its whole preface, HTTP/1.1 as soon as they differ", () => {
    const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    for (let length = 0; length < preface.length; length++) {
      expect(decideVersion(preface.subarray(0, length))).toBeUndefined();
      expect(decideVersion(Buffer.concat([preface.subarray(0, length), Buffer.from("x")]))).toBe("http1");
    }
    expect(decideVersion(preface)).toBe("http2");
    expect(decideVersion(Buffer.concat([preface, Buffer.from("frames")]))).toBe("http2");
  });

  test("may come one by one: HTTP/1.1", async () => {
    const { socket, text } = await openRaw(await openServer());
    for (const byte of "GET / HTTP/1.1\r\nhost: x\r\n\r\n") {
      await new Promise((resolve) => socket.write(byte, resolve));
    }
    await until(() => text().startsWith("HTTP/1.1 404"));
  });

  test("may come one by one: HTTP/2", async () => {
    const { url, port } = await openServer();
    const session = connectHttp2(url, {
      createConnection: () => {
        const socket = connect(port, "127.0.0.1");
        const write = socket.write.bind(socket);
        socket.write = ((chunk: Buffer, ...rest: []) => {
          for (const byte of chunk.subarray(0, -1)) write(Buffer.from([byte]));
          return write(chunk.subarray(-1), ...rest);
        }) as typeof socket.write;
        return socket;
      },
    });
    stack.push({
      async [Symbol.asyncDispose]() {
        session.destroy();
      },
    });
    const [headers] = await once(session.request({ ":path": "/nothing" }), "response");
    expect(headers[":status"]).toBe(404);
  });

  test("may be garbage: the connection ends, the server goes on", async () => {
    const server = await openServer();
    for (const garbage of [
      "\0\x01\x02 rubbish\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nrubbish, and more of it",
    ]) {
      const { socket } = await openRaw(server);
      socket.write(Buffer.from(garbage, "latin1"));
      await once(socket, "close");
    }
    const silent = await openRaw(server);
    silent.socket.write("PRI");
    silent.socket.end();
    await once(silent.socket, "close");
    const client = createClient(EchoService, createConnectTransport({ baseUrl: server.url, httpVersion: "1.1" }));
    expect(textOf(await client.unary(bytes("still here")))).toBe("still here");
  });

  test("of HTTP/1.0 may leave out the host: refused, and the server goes on", async () => {
    const { socket, text } = await openRaw(await openServer());
    socket.write("POST /toolbus.echo.v1.EchoService/Unary HTTP/1.0\r\ncontent-type: application/proto\r\n\r\n");
    await until(() => text().includes(" 400 "));
  });
});

test.each(["1.1", "2"] as const)("the calls of a peer that dies are aborted: HTTP/%s", async (httpVersion) => {
  const [entered, aborted] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const server = await openServer({
    async *serverStream(_request, { signal }) {
      signal.addEventListener("abort", () => aborted.resolve());
      entered.resolve();
      await aborted.promise;
    },
  });
  let toServer: Socket | undefined;
  const cable = createServer((peer) => {
    toServer = connect(server.port, "127.0.0.1");
    peer.pipe(toServer).pipe(peer);
  }).listen(0, "127.0.0.1");
  await once(cable, "listening");
  const baseUrl = `http://127.0.0.1:${(cable.address() as AddressInfo).port}`;
  const client = createClient(EchoService, createConnectTransport({ baseUrl, httpVersion }));
  const reading = (async () => {
    for await (const _ of client.serverStream(bytes("x")));
  })();
  reading.catch(() => {}); // it breaks, which is no concern of the server
  await entered.promise;
  toServer?.end(); // what the kernel sends for a process that was killed
  await aborted.promise;
  toServer?.destroy();
  cable.close();
});

test("a message over the limit is refused as resource_exhausted", async () => {
  const { url } = await openServer(echo, { readMaxBytes: 1_000 });
  const client = createClient(EchoService, createConnectTransport({ baseUrl: url, httpVersion: "1.1" }));
  await expect(client.unary({ value: new Uint8Array(1_001) })).rejects.toMatchObject({ code: Code.ResourceExhausted });
});

test("a fallback that throws ends its own request, and no other", async () => {
  const warned: unknown[] = [];
  const { url } = await openServer(echo, {
    fallback(request, response) {
      if (request.url === "/bad") throw new Error("no such page");
      response.end("fine");
    },
    logger: { warn: (...told: unknown[]) => warned.push(told[1]) },
  });
  expect((await fetch(`${url}/bad`)).status).toBe(500);
  expect(await (await fetch(`${url}/good`)).text()).toBe("fine");
  expect(warned).toEqual(["answering /bad failed: no such page"]);
});

test("other paths go to the fallback, and `before` sees every request first", async () => {
  const { url } = await openServer(echo, {
    before(request, response) {
      response.setHeader("x-seen", "yes");
      if (request.method !== "OPTIONS") return false;
      response.writeHead(204);
      response.end();
      return true;
    },
    fallback: (_request, response) => {
      response.writeHead(200);
      response.end("a page");
    },
  });
  const page = await fetch(`${url}/`);
  expect([await page.text(), page.headers.get("x-seen")]).toEqual(["a page", "yes"]);
  expect((await fetch(`${url}/toolbus.echo.v1.EchoService/Unary`, { method: "OPTIONS" })).status).toBe(204);
});

test("a port that is taken is refused in words", async () => {
  const { port } = await openServer();
  await expect(openServer(echo, { port })).rejects.toMatchObject({
    code: "failed_precondition",
    message: `cannot listen on 127.0.0.1:${port}: the port is taken by another process`,
  });
});

describe("stopping", () => {
  test.each(["1.1", "2"] as const)("finishes what is in flight and takes nothing new: HTTP/%s", async (httpVersion) => {
    const gate = createGate();
    const server = await openServer({
      async unary(request) {
        await gate.pass();
        return request;
      },
    });
    const client = createClient(EchoService, createConnectTransport({ baseUrl: server.url, httpVersion }));
    const answer = client.unary(bytes("in flight"));
    await gate.entered;
    const stopped = server[Symbol.asyncDispose]();
    const late = connect(server.port, "127.0.0.1");
    await expect(once(late, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    gate.open();
    expect(textOf(await answer)).toBe("in flight");
    await stopped;
  });

  test("closes connections that are idle or have not said a word", async () => {
    const server = await openServer(echo, { drainTimeoutMs: 60_000 });
    const client = createClient(EchoService, createConnectTransport({ baseUrl: server.url, httpVersion: "2" }));
    await client.unary(bytes("x"));
    await openRaw(server);
    const kept = await openRaw(server);
    kept.socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await until(() => kept.text().includes("404"));
    await server[Symbol.asyncDispose]();
  });

  test("ends calls that go on for ever with unavailable once its time is over, and cuts those that do not listen", async () => {
    const gate = createGate();
    const server = await openServer(
      {
        async *serverStream(request, context) {
          yield request;
          await new Promise((_resolve, reject) => {
            context.signal.addEventListener("abort", () => reject(context.signal.reason));
          });
        },
        async unary() {
          await gate.pass();
          return bytes("");
        },
      },
      { drainTimeoutMs: 20 },
    );
    const client = createClient(EchoService, createGrpcTransport({ baseUrl: server.url }));
    const deaf = client.unary(bytes("x")).catch((error: unknown) => ConnectError.from(error));
    const stream = client.serverStream(bytes("x"))[Symbol.asyncIterator]();
    await stream.next();
    await gate.entered;
    const ended = expect(stream.next()).rejects.toMatchObject({
      code: Code.Unavailable,
      rawMessage: "the server is stopping",
    });
    await server[Symbol.asyncDispose]();
    await ended;
    expect(await deaf).toBeInstanceOf(ConnectError);
  });
});
