import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { testsByProject } from "./test/harness/projects.ts";

const { pure, broker, system, isolated } = testsByProject();
const cores = availableParallelism();

// Three layers. `pure` starts nothing, `broker` starts NATS or another process for itself. `system` needs several services, and is the
// last, as each of its files keeps the machine busy by itself. All share workers, and what these have imported, but for the `isolated`,
// which replace the clock or the like. Time limits are for what hangs: a machine with other work to do makes every test many times slower.
export default defineConfig({
  test: {
    globalSetup: ["./test/harness/binaries.ts"],
    isolate: false,
    env: { npm_lifecycle_event: "test" }, // commands that are printed do not depend on how the tests are started
    projects: [
      {
        extends: true,
        test: {
          name: "pure",
          include: [...pure],
          maxWorkers: cores,
          testTimeout: 60_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "isolated",
          include: [...isolated],
          isolate: true,
          maxWorkers: cores,
          testTimeout: 60_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: "broker",
          include: [...broker],
          // They wait for others much of the time.
          maxWorkers: cores + 1,
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
          maxWorkers: cores,
          testTimeout: 180_000,
          hookTimeout: 240_000,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
