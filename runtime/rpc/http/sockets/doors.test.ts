import { once } from "node:events";
import { connect } from "node:http2";
import { expect, test } from "vitest";
import { openServer } from "../testing/echo-server.ts";

test("over HTTP/2 says how large a head may be, and refuses a larger one by itself", async () => {
  const { url } = await openServer();
  const session = connect(url, { maxSendHeaderBlockLength: 1024 * 1024 });
  const [{ maxHeaderListSize }] = await once(session, "remoteSettings");
  expect(maxHeaderListSize).toBe(64 * 1024);
  const fields = Array.from({ length: 10 }, (_, n) => [`x-${n}`, "y".repeat(10_000)]);
  await expect(once(session.request(Object.fromEntries(fields)), "response")).rejects.toThrow("ENHANCE_YOUR_CALM");
  const [head] = await once(session.request({ ":path": "/after" }), "response");
  expect(head[":status"]).toBe(404);
  session.close();
});
