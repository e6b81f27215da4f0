import type { BenchResult } from "../measuring/result.ts";
import { measureLogBytes } from "./figures/log-bytes.ts";
import { measureSteps } from "./steps.ts";
import { measureStreams } from "./streams.ts";
import { measureLength, measureTurns } from "./turns.ts";
import { loopServices, openWorld } from "./world.ts";

/*
 * What does the durable loop cost? A real nats-server, real services in processes of their own, production's code but for the
 * model, which says what it is told to and remembers when it was asked.
 */

export async function* measureLoop(): AsyncIterable<BenchResult> {
  await using world = await openWorld({ services: loopServices });
  yield* measureTurns(world);
  yield await measureLength(world);
  yield* measureSteps(world);
  yield await measureLogBytes(world);
  yield* measureStreams(world);
}
