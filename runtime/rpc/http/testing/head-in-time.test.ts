import { once } from "node:events";
import { connect } from "node:http2";
import { test } from "vitest";
import { EchoService } from "#runtime/rpc/nats/testing/echo-service.ts";
import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import { HEAD_MS } from "../head-in-time.ts";
import { bytes, openServer } from "./echo-server.ts";

test.each([
  ["before", HEAD_MS / 3],
  ["after", HEAD_MS * 1.3],
])("BUS-2 an implementation is left whose gRPC client leaves %s the head of a stream", async (_, leavesAfterMs) => {
  let isLeft = false;
  const { url } = await openServer({
    async *serverStream() {
      try {
        await delay(HEAD_MS * 1.6);
        yield bytes("late");
        yield bytes("and more");
      } finally {
        isLeft = true;
      }
    },
  });
  const session = connect(url);
  const path = `/${EchoService.typeName}/ServerStream`;
  const headers = { ":method": "POST", ":path": path, "content-type": "application/grpc+proto", te: "trailers" };
  const stream = session.request(headers);
  stream.end(Buffer.alloc(5));
  await delay(leavesAfterMs);
  stream.close();
  await once(stream, "close");
  await until(() => isLeft, { what: "the end of the implementation" });
  session.destroy();
});
