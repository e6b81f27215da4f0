import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

// Two layers: `unit` stands beside its subject and takes seconds; `system` needs more than one service, with real peers.
export default defineConfig({
  test: {
    globalSetup: ["./test/harness/binaries.ts"],
    // Without a word vitest takes one worker less than there are cores, which is one on two cores.
    maxWorkers: availableParallelism(),
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["{runtime,services,cli,tools,examples}/**/*.test.ts"],
          testTimeout: 20_000,
          hookTimeout: 60_000,
        },
      },
      {
        extends: true,
        test: { name: "system", include: ["test/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 120_000 },
      },
    ],
  },
});
