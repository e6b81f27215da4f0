import { delay } from "#runtime/time/delay.ts";
import { until } from "#runtime/time/until.ts";
import type { FaultyService } from "../processes/faulty-service.ts";
import type { Random } from "../random.ts";
import type { Strike } from "./check/history.ts";

export interface StrikeOptions {
  readonly routers: readonly FaultyService[];
  readonly random: Random;
  readonly kills: number;
  readonly minMs: number;
  readonly maxMs: number;
  readonly onStrike: (strike: Strike) => void;
}

/** One of so many strikes is a freeze, longer than a router may say nothing about what it holds. */
const freezeEvery = 4;
const freezeMs = { least: 3_500, most: 6_000 };

/**
 * Kills and freezes routers at random, at an even pace, as long as another one could serve; for so long and until so many
 * were killed, and no longer than `maxMs`. Resolves when all stand again.
 */
export async function strikeRouters(options: StrikeOptions): Promise<void> {
  const { routers, random, kills, minMs, maxMs, onStrike } = options;
  const frozen = new Map<FaultyService, Promise<void>>();
  const startedAtMs = performance.now();
  const passedMs = () => performance.now() - startedAtMs;
  const gapMs = (minMs / (kills + 1)) * (1 - 1 / (freezeEvery + 1));
  let killed = 0;

  async function freeze(router: FaultyService): Promise<void> {
    const fromMs = Date.now();
    router.freeze();
    await delay(freezeMs.least + random.next() * (freezeMs.most - freezeMs.least));
    router.thaw();
    onStrike({ kind: "freeze", router: router.instance, fromMs, toMs: Date.now() });
    frozen.delete(router);
  }

  for (let strike = 1; (passedMs() < minMs || killed < kills) && kills > 0 && passedMs() < maxMs; strike++) {
    await delay(gapMs * (0.5 + random.next()));
    const usable = () => routers.filter((router) => router.isReady && !frozen.has(router));
    const [victim] = random.shuffled(
      await until(() => usable().length > 1 && usable(), { timeoutMs: 120_000, what: "two routers to be ready" }),
    );
    if (victim === undefined) continue;
    if (strike % freezeEvery === 0) frozen.set(victim, freeze(victim));
    else {
      const fromMs = Date.now();
      await victim.kill();
      onStrike({ kind: "kill", router: victim.instance, fromMs, toMs: Date.now() });
      killed += 1;
    }
  }
  await Promise.all(frozen.values());
  await Promise.all(routers.map((router) => router.ready()));
}
