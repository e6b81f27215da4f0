import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { testsByProject } from "./test/harness/projects.ts";

const { system, broker, isolated, pure } = testsByProject();
const inOrder = [...system, ...broker, ...isolated, ...pure];

/** What may take longest is first, so that it is not the last and alone; what is short fills the workers at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const placeOf = ({ moduleId, project }: TestSpecification) =>
      inOrder.indexOf(moduleId.slice(project.config.root.length + 1));
    return files.toSorted((one, other) => placeOf(one) - placeOf(other));
  }
}

// Three layers. `pure` starts nothing, `broker` starts NATS or another process for itself, `system` needs several services. All share
// workers, and what these have imported, but for the `isolated`, which replace the clock or the like. There is a worker more than the
// machine has cores, as they wait for others much of the time. Time limits are for what hangs: a machine with other work to do makes
// every test many times slower.
export default defineConfig({
  test: {
    globalSetup: ["./test/harness/binaries.ts"],
    isolate: false,
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongestFirst },
    env: { npm_lifecycle_event: "test" }, // commands that are printed do not depend on how the tests are started
    testTimeout: 60_000,
    hookTimeout: 120_000,
    projects: [
      { extends: true, test: { name: "pure", include: [...pure] } },
      { extends: true, test: { name: "isolated", include: [...isolated], isolate: true } },
      { extends: true, test: { name: "broker", include: [...broker] } },
      { extends: true, test: { name: "system", include: [...system], testTimeout: 180_000, hookTimeout: 240_000 } },
    ],
  },
});
