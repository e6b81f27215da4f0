import { access } from "node:fs/promises";
import { join } from "node:path";
import { observeCommand, projectRoot, runCommand } from "./command.ts";
import { fetchProtovalidate } from "./protovalidate.ts";

/**
 * The contract as it was last released: an image that holds its imports. It is kept in the tree, since a clone may
 * lack branches and tags, and since no commit holds protovalidate's schema.
 */
export const releasedImage = join("proto", "released.binpb");

/** What would break a client of the released contract, one sentence each. */
export async function breakagesOf(root: string): Promise<string[]> {
  await fetchProtovalidate(root);
  return breakagesBetween(root, "proto");
}

/** The same for any input of buf, such as another image. */
export async function breakagesBetween(root: string, input: string): Promise<string[]> {
  await access(join(root, releasedImage)).catch((cause: unknown) => {
    throw new Error(`${releasedImage} is missing: no contract has been released`, { cause });
  });
  const args = ["breaking", input, "--exclude-imports", "--against", releasedImage];
  const outcome = await observeCommand("buf", args, { cwd: root });
  return outcome.exitCode === 0 ? [] : outcome.output.trim().split("\n");
}

/** Makes the contract as it stands the released one. */
export async function releaseContract(root: string): Promise<void> {
  await fetchProtovalidate(root);
  await runCommand("buf", ["lint"], { cwd: root });
  await runCommand("buf", ["build", "proto", "--exclude-source-info", "-o", releasedImage], { cwd: root });
}

async function main(options: ReadonlySet<string>): Promise<void> {
  const isFirst = await access(join(projectRoot, releasedImage)).then(
    () => false,
    () => true, // nothing to compare with: whatever the contract says, it breaks nobody
  );
  const breakages = isFirst ? [] : await breakagesOf(projectRoot);
  for (const breakage of breakages) console.error(breakage);
  if (breakages.length > 0 && !options.has("--breaking")) {
    throw new Error(
      "The contract breaks its last release. Mend it, or release the breakage on purpose: npm run contract:release -- --breaking",
    );
  }
  await releaseContract(projectRoot);
  console.log(`${releasedImage} holds the contract as it stands; commit it.`);
}

if (import.meta.main) {
  try {
    await main(new Set(process.argv.slice(2)));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
