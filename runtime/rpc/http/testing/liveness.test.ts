import { once } from "node:events";
import { connect, constants, createServer, type Http2ServerRequest } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { until } from "#runtime/time/until.ts";
import { endWhenSilent } from "../sockets/liveness.ts";

test("CTR-7 a connection is pinged at one pace, however many of its requests came one after the other", async () => {
  const requests: Http2ServerRequest[] = [];
  const server = createServer((request) => void requests.push(request)).listen(0, "127.0.0.1");
  await once(server, "listening");
  const session = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  try {
    const pingedAtMs: number[] = [];
    session.on("ping", () => void pingedAtMs.push(performance.now()));
    session.request({ [constants.HTTP2_HEADER_PATH]: "/" });
    const [request] = await until(() => requests.length > 0 && requests);
    if (request === undefined) throw new Error("there is no request");
    for (let n = 0; n < 8; n += 1) endWhenSilent(request)();
    const stop = endWhenSilent(request);
    await until(() => pingedAtMs.length >= 3, { what: "three pings" });
    stop();
    expect((pingedAtMs[2] ?? 0) - (pingedAtMs[0] ?? 0)).toBeGreaterThan(700);
  } finally {
    session.destroy();
    server.close();
  }
});
