// The gateway is where everybody outside knows it to be, also after it died.

import { expect, it } from "vitest";
import { until } from "#runtime/time/until.ts";
import { openTestSuite } from "../../harness/suite.ts";

it("BUS-6 a gateway that took a free port and died is back where it was", async () => {
  await using suite = await openTestSuite({ services: ["gateway"] });
  const healthy = async () => (await fetch(`${suite.url}/healthz`)).ok;
  expect(await healthy()).toBe(true);
  const [gateway] = suite.services;
  const before = gateway!.pid!;
  process.kill(before, "SIGKILL");
  await until(() => gateway!.pid !== undefined && gateway!.pid !== before, { what: "another gateway" });
  await until(() => healthy().catch(() => false), { timeoutMs: 15_000, what: "an answer at the address of the first" });
}, 60_000);
