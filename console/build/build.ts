import { fileURLToPath } from "node:url";
import { build } from "vite";
import { leaveRulesOut } from "./leave-rules-out.ts";

const root = fileURLToPath(new URL("../app", import.meta.url));

/** Builds the page into a folder: the same bytes from the same sources, under names that stay. */
export async function buildConsole(outDir: string): Promise<void> {
  await build({
    root,
    configFile: false,
    logLevel: "warn",
    base: "/console/",
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    plugins: [{ name: "leave-rules-out", transform: (code, id) => leaveRulesOut(code, id) }],
    build: {
      outDir,
      emptyOutDir: true,
      target: "es2022",
      modulePreload: { polyfill: false },
      assetsInlineLimit: 0,
      rolldownOptions: {
        checks: { bundlerTimings: false },
        output: {
          entryFileNames: "[name].js",
          chunkFileNames: "[name].js",
          assetFileNames: "[name][extname]",
          // What the first screen needs is one file, with all that it imports: packed together it is smaller, and fetched at once.
          codeSplitting: {
            groups: [
              { name: "first", test: /console.(app.shell|overview)/, priority: 1 },
              { name: "shared", minShareCount: 4 },
            ],
          },
        },
      },
    },
  });
}
