import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { type AddressInfo, connect, createServer } from "node:net";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { until } from "#runtime/time/until.ts";
import { bytes, openRaw, openServer, stack, textOf } from "../testing/echo-server.ts";
import { decideVersion, tellVersion } from "./first-bytes.ts";

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

  test("count if they have arrived in time, however late a busy process reads them", async () => {
    const told = Promise.withResolvers<string>();
    await using server = createServer((socket) => {
      socket.on("close", () => told.resolve("cut off"));
      tellVersion(socket, 20, (version) => {
        told.resolve(version);
        socket.destroy();
      });
      client.write("GET / HTTP/1.1\r\n\r\n");
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200);
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    expect(await told.promise).toBe("http1");
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
