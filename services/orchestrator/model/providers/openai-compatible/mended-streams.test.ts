import { expect, test } from "vitest";
import { mendingStreams } from "./mended-streams.ts";

test("SEC-5 JSON that a provider sends with 200 and does not end is not held beyond a bound", async () => {
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(sink) {
      sent += 2 ** 20;
      if (sent > 64 * 2 ** 20) return sink.close();
      sink.enqueue(Buffer.alloc(2 ** 20, "{"));
    },
  });
  const headers = { "content-type": "application/json" };
  const { body } = await mendingStreams(async () => new Response(endless, { headers }), String)("http://model/");
  await expect(Array.fromAsync(body!)).rejects.toThrow(/over 16777216 bytes/);
  expect(sent).toBeLessThan(32 * 2 ** 20);
});
