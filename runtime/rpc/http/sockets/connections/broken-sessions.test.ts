import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { expect, test } from "vitest";
import { echo, openServer } from "../../testing/echo-server.ts";
import { createSelfSigned } from "../../testing/self-signed.ts";

const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const END_HEADERS = 4;
/** More than a connection may reset at once. */
const STREAMS = 1_200;

function frame(type: number, flags: number, stream: number, payload = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A header of HPACK that is in no table. */
function header(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}

const fields = { ":method": "POST", ":scheme": "http", ":path": "/x", ":authority": "a" };
const head = Buffer.concat(Object.entries(fields).map(([name, value]) => header(name, value)));
const resets = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  frame(SETTINGS, 0, 0),
  ...Array.from({ length: STREAMS }, (_, n) => [
    frame(HEADERS, END_HEADERS, 2 * n + 1, head),
    frame(RST_STREAM, 0, 2 * n + 1, Buffer.from([0, 0, 0, 8])),
  ]).flat(),
]);

const peers: Record<string, { open: (port: number) => Socket; hasTls: boolean }> = {
  "in clear": { open: (port) => connect(port, "127.0.0.1"), hasTls: false },
  "over TLS": {
    open: (port) => connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false, ALPNProtocols: ["h2"] }),
    hasTls: true,
  },
};

test.for(Object.entries(peers))(
  "SEC-5 who breaks the rules of HTTP/2 %s gets one connection after another",
  async ([_, { open, hasTls }]) => {
    const server = await openServer(echo, hasTls ? { tls: createSelfSigned() } : {});
    const breakOne = () =>
      new Promise<void>((resolve) => {
        const socket = open(server.port);
        socket.on("error", () => {}).on("close", () => resolve());
        socket.resume().write(resets);
      });
    const startMs = performance.now();
    await breakOne();
    await Promise.all(Array.from({ length: 5 }, breakOne));
    expect(performance.now() - startMs, "five steps of 250 ms").toBeGreaterThan(1_200);
  },
);
