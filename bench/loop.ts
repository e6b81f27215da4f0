import { measureLogBytes } from "./loop/log-bytes.ts";
import { measureSteps } from "./loop/steps.ts";
import { measureStreams } from "./loop/streams.ts";
import { measureLength, measureTurns } from "./loop/turns.ts";
import { loopServices, openWorld } from "./loop/world.ts";
import type { BenchResult } from "./measuring/result.ts";

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
