import { expect, test } from "vitest";
import { runSwitches, sharedWatches } from "./run.ts";

const faultless = { lost: [], misled: [] };

test("ORCH-1 agents switched under load, a router killed meanwhile: no call is lost or misled, and nothing is left", async () => {
  const result = await runSwitches({ agents: 6, switches: 5, mcpAgents: 2, kills: 1, seed: 7, onProgress: () => {} });
  expect(result.switched + result.notSwitched).toBe(30);
  expect(result.tally).toMatchObject(faultless);
  expect(result.tally.answered).toBeGreaterThan(30);
  expect(result.processesSeen).toBeGreaterThan(0);
  expect(result).toMatchObject({
    kills: 1,
    died: 0,
    processesLeft: 0,
    connectionsLeft: 0,
    contextsLeft: 0,
  });
  expect(result.watchesLeft).toBeLessThanOrEqual(sharedWatches);
  expect([...result.keysLeft]).toEqual([]);
}, 300_000);
