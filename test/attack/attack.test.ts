// The short form of `npm run attack`: each attack once and small, against a suite of processes.

import { expect, test } from "vitest";
import { shortAttacks as attacks } from "./attacks/all.ts";
import { runCampaign } from "./campaign.ts";

test("SEC-1 SEC-2 SEC-3 SEC-5 SEC-7 no attack reaches anything, and another principal loses no call meanwhile", {
  timeout: 300_000,
}, async () => {
  const verdicts = await runCampaign({ attacks, isShort: true, seed: 1, onVerdict: () => {} });
  expect(verdicts).toHaveLength(attacks.length + 1);
  expect(
    verdicts.filter(({ reached }) => reached.length > 0).map(({ attack, reached }) => ({ attack, reached })),
  ).toEqual([]);
  expect(verdicts.filter(({ tries }) => tries === 0)).toEqual([]);
});
