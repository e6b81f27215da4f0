import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { testsByProject } from "./test/harness/projects.ts";

const { pure, broker, system } = testsByProject();
const cores = availableParallelism();

// Three layers. `pure` starts nothing, so its files share workers and what these have imported. `broker` starts NATS or another
// process for itself. `system` needs several services, and is the last, as each of its files keeps the machine busy by itself. Time
// limits are for what hangs: a machine with other work to do makes every test many times slower.
export default defineConfig({
  test: {
    globalSetup: ["./test/harness/binaries.ts"],
    env: { npm_lifecycle_event: "test" }, // commands that are printed do not depend on how the tests are started
    projects: [
      {
        extends: true,
        test: {
          name: "pure",
          include: [...pure],
          isolate: false,
          maxWorkers: cores,
          testTimeout: 60_000,
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
