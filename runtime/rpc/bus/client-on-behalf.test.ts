import { create } from "@bufbuild/protobuf";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { pino } from "pino";
import { expect, test } from "vitest";
import { openTestBus } from "../../../test/harness/bus.ts";
import { refuse } from "../../failure/failure.ts";
import { callerOf } from "../identity.ts";
import { EchoService } from "../nats/testing/echo-service.ts";
import { clientOnBus } from "./client.ts";
import { clientOnBehalf } from "./client-on-behalf.ts";
import { serveOnBus } from "./server.ts";

const options = { signal: new AbortController().signal, principal: "ann" };
const request = create(BytesValueSchema);
const refused = { code: "not_found", reason: "RUN_NOT_FOUND", name: "Failure" };

test("a client on behalf of a principal says who asks, and fails with the failure of the other side", async () => {
  await using bus = await openTestBus();
  const callers: unknown[] = [];
  await using _server = await serveOnBus(bus, {
    service: "echo",
    logger: pino({ level: "silent" }),
    routes: (router) =>
      router.service(EchoService, {
        unary: () => refuse("not_found", "nothing here", { reason: "RUN_NOT_FOUND" }),
        async *serverStream(message, context) {
          callers.push(callerOf(context).principal);
          yield message;
          refuse("not_found", "nothing more", { reason: "RUN_NOT_FOUND" });
        },
      }),
  });
  const client = clientOnBehalf(clientOnBus(bus, EchoService, { process: "echo" }));
  await expect(client.unary(request, options)).rejects.toMatchObject(refused);
  await expect(Array.fromAsync(client.serverStream(request, options))).rejects.toMatchObject(refused);
  expect(callers).toEqual(["ann"]);
});

test("LOOP-14 a request that was not sent fails as one that never started", async () => {
  await using bus = await openTestBus();
  const client = clientOnBehalf(clientOnBus(bus, EchoService, { process: "nobody" }));
  await expect(client.unary(request, options)).rejects.toMatchObject({ reason: "CALL_NOT_STARTED" });
});
