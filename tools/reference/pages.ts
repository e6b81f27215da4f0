import { filesReference } from "./files.ts";
import { referencePath, settingsReference } from "./settings.ts";

/** The pages that are written from what services read, by their paths. */
export const pages: Readonly<Record<string, (root: string) => Promise<string>>> = {
  [referencePath]: settingsReference,
  "docs/files.md": filesReference,
};
