import { internalFolder, ownFiles, wholeContract } from "../gen/contract.ts";

/** A public proto that imports an internal one would publish it with itself. */
export async function importsOfInternal(root: string): Promise<string[]> {
  const isInternal = (path: string) => path.startsWith(internalFolder);
  return ownFiles(await wholeContract(root))
    .filter(({ name }) => !isInternal(name))
    .flatMap(({ name, dependency }) => dependency.filter(isInternal).map((path) => `proto/${name} imports ${path}`));
}
