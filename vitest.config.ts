import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { longestTimeout, testsByProject } from "./test/harness/projects.ts";

const { pure, broker, system } = testsByProject();
const cores = availableParallelism();

/** Those that give their tests the longest time begin, so that none of them runs alone at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => longestTimeout(b.moduleId) - longestTimeout(a.moduleId));
  }
}

// Three layers. `pure` starts nothing, so its files share workers and what these have imported. `broker` starts NATS or another
// process for itself. `system` needs several services. Files of these two wait for others half of the time, so that each core has two.
// Time limits are for what hangs: a machine with other work to do makes every test many times slower.
export default defineConfig({
  test: {
    globalSetup: ["./test/harness/binaries.ts"],
    sequence: { sequencer: LongestFirst },
    env: { npm_lifecycle_event: "test" }, // commands that are printed do not depend on how the tests are started
    projects: [
      {
        extends: true,
        test: {
          name: "pure",
          include: [...pure],
          isolate: false,
          maxWorkers: cores + 1,
          testTimeout: 60_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "broker",
          include: [...broker],
          maxWorkers: 2 * cores,
          testTimeout: 60_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "system",
          include: [...system],
          maxWorkers: 2 * cores,
          testTimeout: 180_000,
          hookTimeout: 240_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
