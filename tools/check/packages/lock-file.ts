import * as z from "zod";

const lockFileSchema = z.object({
  packages: z.record(z.string(), z.object({ optionalDependencies: z.record(z.string(), z.string()).optional() })),
});

/** The optional packages that a locked package asks for and that the lock file does not hold. */
export function faultsInLockFile(text: string): string[] {
  const { packages } = lockFileSchema.parse(JSON.parse(text));
  return Object.entries(packages).flatMap(([asker, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !foldersSeenFrom(asker).some((folder) => `${folder}node_modules/${name}` in packages))
      .map((name) => `package-lock.json lacks ${name}, an optional package of ${asker || "the project"}`),
  );
}

/** Where Node looks for what a package asks for: in its own folder, then in each one around it. */
function foldersSeenFrom(asker: string): string[] {
  const folders = asker === "" ? [] : [`${asker}/`];
  for (let end = asker.lastIndexOf("/node_modules/"); end >= 0; end = asker.lastIndexOf("/node_modules/", end - 1)) {
    folders.push(asker.slice(0, end + 1));
  }
  return [...folders, ""];
}
