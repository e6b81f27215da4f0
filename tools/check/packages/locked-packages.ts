import * as z from "zod";
import { runCommand } from "../../gen/command.ts";
import type { Findings } from "../findings.ts";

const lockFileSchema = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string().optional(),
      integrity: z.string().optional(),
      license: z.string().optional(),
      dev: z.boolean().optional(),
    }),
  ),
});

/** Licences under which a package may be delivered with the suite, as SPDX says them. */
const deliverable = new Set([
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "ISC",
  "MIT",
  "Unlicense",
  "MIT OR Apache-2.0",
  "(AFL-2.1 OR BSD-3-Clause)",
  "(Apache-2.0 AND BSD-3-Clause)",
  "(MIT AND Zlib)",
]);

/** And those of tools that only developers run; both servers of MCP are in the examples and under Apache-2.0 and MIT. */
const forDevelopers = new Set([
  "MPL-2.0",
  "(MIT OR GPL-3.0-or-later)",
  "(MIT OR Apache-2.0)",
  "Apache2",
  "SEE LICENSE IN LICENSE",
  "LICENSE of pipenet: MIT", // which its manifest does not say
]);

const READ_IN_FILES: Readonly<Record<string, string>> = { "node_modules/pipenet": "LICENSE of pipenet: MIT" };

/** The locked packages without a hash, or with a licence that nobody has read. */
export function faultsInPackages(lockFile: string): Findings {
  const packages = Object.entries(lockFileSchema.parse(JSON.parse(lockFile)).packages).filter(([path]) => path !== "");
  const unhashed = packages.filter(([, { integrity }]) => integrity === undefined);
  const faults = [
    ...unhashed.map(([path]) => `${path} has no integrity: npm view <name>@<version> dist.integrity`),
    ...packages
      .map(([path, entry]) => [path, { license: READ_IN_FILES[path], ...entry }] as const)
      .filter(([, { license = "", dev }]) => !deliverable.has(license) && !(dev && forDevelopers.has(license)))
      .map(([path, { license = "none" }]) => `${path} has the licence ${license}`),
  ];
  return { faults, figures: [`locked packages: ${packages.length}`] };
}

const sbomSchema = z.object({
  components: z.array(z.object({ name: z.string(), licenses: z.array(z.unknown()).optional() })),
});

/** The components of `npm run sbom` that tell no licence. */
export async function faultsInSbom(root: string): Promise<string[]> {
  const sbom = sbomSchema.parse(JSON.parse(await runCommand("npm", ["run", "--silent", "sbom"], { cwd: root })));
  if (sbom.components.length === 0) return ["npm run sbom names no component"];
  return sbom.components
    .filter(({ licenses = [] }) => licenses.length === 0)
    .map(({ name }) => `npm run sbom tells no licence of ${name}`);
}
