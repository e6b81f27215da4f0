import { once } from "node:events";
import { Socket } from "node:net";
import { connect } from "node:tls";
import { afterEach, expect, test, vi } from "vitest";
import { until } from "#runtime/time/until.ts";
import { echo, openRaw, openServer } from "./echo-server.ts";
import { createSelfSigned } from "./self-signed.ts";

afterEach(() => vi.restoreAllMocks());

/** What the server has asked of its own end of a connection. */
const probes = (port: number, calls: [unknown[], unknown][]) =>
  calls.find(([, socket]) => (socket as Socket).localPort === port)?.[0];

test.each([undefined, createSelfSigned()])(
  "SEC-5 a connection whose peer has vanished without a word is found out, though nothing is sent on it",
  async (tls) => {
    const asked: [unknown[], unknown][] = [];
    const { setKeepAlive } = Socket.prototype;
    vi.spyOn(Socket.prototype, "setKeepAlive").mockImplementation(function (this: Socket, ...given) {
      asked.push([given, this]);
      return setKeepAlive.apply(this, given);
    });
    await using server = await openServer(echo, tls && { tls });
    const client = tls
      ? connect({ port: server.port, host: "127.0.0.1", rejectUnauthorized: false })
      : (await openRaw(server)).socket;
    if (tls) await once(client, "secureConnect");
    const [isOn, delayMs] = await until(() => probes(server.port, asked), { timeoutMs: 3_000, what: "probes of TCP" });
    expect(isOn).toBe(true);
    expect(delayMs).toBeLessThanOrEqual(30_000);
    client.destroy();
  },
);
