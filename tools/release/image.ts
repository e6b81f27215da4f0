import { access, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorSet, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

/**
 * The contract as it was last released: an image that holds its imports and its comments, from which documented defaults
 * are read. It is kept in the tree, since a clone may lack branches and tags, and since no commit holds protovalidate's schema.
 */
export const releasedImage = join("proto", "released.binpb");

export async function releasedContract(root: string): Promise<FileDescriptorSet> {
  const image = join(root, releasedImage);
  await access(image).catch((cause: unknown) => {
    throw new Error(`${releasedImage} is missing: no contract has been released`, { cause });
  });
  return fromBinary(FileDescriptorSetSchema, await readFile(image));
}
