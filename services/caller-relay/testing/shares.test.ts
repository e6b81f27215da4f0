import { expect, test } from "vitest";
import { shrinkStore } from "#runtime/bus/testing/shrink-store.ts";
import { failureFromConnectError } from "#runtime/failure/connect.ts";
import { openTestRelay, owner } from "./test-relay.ts";

test("SEC-6 a principal whose declarations take the most declares no more while room is short, and others do", async () => {
  await using relay = await openTestRelay({ instances: ["a"] });
  await shrinkStore(relay.bus, "KV_toolbus_callers", 4 * 2 ** 20);
  const [app, other] = [relay.clientsOf(owner), relay.clientsOf("other")];
  await other.declare("others-1", { name: "one" });
  const description = "x".repeat(16_000);
  const fill = async () => {
    for (let n = 0; n < 1_000; n += 1) await app.declare(`s-${n}`, { name: "large", description });
  };
  expect(await fill().then(() => undefined, failureFromConnectError)).toMatchObject({
    code: "resource_exhausted",
    reason: "SHARE_EXCEEDED",
    message: expect.stringMatching(
      /^"owner" has its share of KV_toolbus_callers: \d+ bytes of declarations; declare no/,
    ),
  });
  expect((await other.declare("others-2", { name: "two" })).names).toEqual(["app_two"]);
  expect((await app.declare("s-1", { name: "large", description })).names, "as it stands").toEqual(["app_large"]);
  await app.declare("s-0"); // takes its tools back
  expect((await app.relay.getDeclaration({ sessionId: "s-0" })).declaration).toBeUndefined();
});
