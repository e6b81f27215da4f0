import { defineConfig } from "vitest/config";

// Journeys need a browser, so that they are a command of their own: npm run test:console.
export default defineConfig({
  test: {
    root: new URL("..", import.meta.url).pathname,
    include: ["console/testing/**/*.test.ts"],
    globalSetup: ["./test/harness/binaries.ts"],
    testTimeout: 180_000,
    hookTimeout: 240_000,
    fileParallelism: false,
    // A page is waited for as long as a machine with other work may take.
    expect: { poll: { timeout: 60_000 } },
  },
});
